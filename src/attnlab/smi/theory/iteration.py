r"""The iteration of state evolution, for all scrambles of the points side by side.

.. math:: V_{new} = L \big((1 + \epsilon) L^2 + \alpha S\big)^{-1} L, \qquad V = L^2,\; Q = I - V

Each scramble runs its own fixed point on its own points. The map is then deterministic and converges, and the spread of
the ends is the error bar. Averaging S over the scrambles in one iteration would hide the error near a transition, where
the map amplifies it.

Where the changes of an eigenvalue of V are a geometric series, a leap goes to its sum, by at most a factor ten of the
eigenvalue and of 1 minus it. The slope of the map must be the same over the whole leap: two fixed points have slopes on
either side of 1 between them, so that a leap does not pass to another branch. The end is judged by the map itself.
After an alarm the iteration goes back to before the last leap; then, or without progress, it makes no more.

The modes that importance sampling finds jump as V moves, so that its map is not continuous and the residual stays at
the level of that noise. Such an iteration ends when the mean of its iterates no longer moves; the last residual is part
of the error.

A noiseless link whose V falls by a constant factor below 0.9 goes on to V = 0: S(V) - S(0) is of order V^(1/2), which
at V = 1e-4 changes the factor by some percent. The rest of the way would need the finest grids. Near the threshold of
exact recovery some scrambles do and others do not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnlab.smi.link import Link
from attnlab.smi.posterior.moments import Rule
from attnlab.smi.theory.gains import Gain, Points, gain

EXACT = 1e-8  # V below which the directions are recovered exactly
SMALL = 1e-2  # an eigenvalue of Q or V below it must also settle relative to its size
SETTLED = 2e-3  # that relative change
ZERO = 1e-12  # a rotation to eigenvectors and back leaves this much where Q vanishes
GUARD = 50  # iterations in which the residual must fall or grow by 10 %
LEAP = 10.0  # largest factor of an eigenvalue of V or Q in a leap
NEAR, FALLS = 1e-4, 0.9  # V of a noiseless link, and the factor of a step, from which V goes on to zero
NOISY = 10.0  # residual in units of tol below which the noise of importance sampling may decide
HOVER = 8  # iterations whose mean is the end of a noisy iteration
MODERATE = 0.25  # share of V and of Q that a leap may cover where neither is small
GEOMETRIC = 0.1  # share of its distance from 1 by which the ratio of two changes may move in a leap


@dataclass(frozen=True)
class Map:
    """The map V -> V_new of one link at one alpha, and when its iteration ends."""

    link: Link
    alpha: float
    points: Points
    damping: float = 0.0
    tol: float = 1e-5
    max_iter: int = 500
    leaps: bool = True

    def run(self, V: np.ndarray, side: float = 0.0, rule: Rule | None = None) -> Run:
        """Iterate from V (R, r, r) with ``side`` information in every step."""
        trajectory, residuals, recent, rate = [V.mean(axis=0)], [np.inf], [V], 0.0
        leaps, before, mark = self.leaps, V, 1
        zero, eye = np.linalg.eigvalsh(V)[:, -1] < EXACT, np.eye(V.shape[1])
        for _ in range(self.max_iter):
            # The other scrambles go on; points at V = 0 would need infinitely fine grids.
            held = np.where(zero[:, None, None], NEAR * eye, V)
            found = gain(self.link, held, self.points, rule)
            rule = found.rule.after(found.ess)
            if found.alarm and leaps and before is not V:
                V, leaps, recent, mark = before, False, [before], len(residuals)
                continue
            if reason := found.alarm:
                return Run(V, trajectory, False, [np.nan], found, reason)
            new = np.where(zero[:, None, None], 0.0, step(held, found.product, self.alpha, side))
            residuals.append(float(np.abs(new - V).max()))
            settled = residuals[-1] <= self.tol and _small_settled(V, new)
            V = self.damping * V + (1 - self.damping) * new
            if len(recent) > 1 and residuals[-2] > 0:
                rate = residuals[-1] / residuals[-2]
            recent.append(V)
            # With noise in the output V cannot reach zero.
            if len(recent) >= 4 and not self.link.noise and (gone := vanishes(*recent[-3:]) & ~zero).any():
                zero = zero | gone
                V = np.where(zero[:, None, None], 0.0, V)
                recent = [V]
            done = settled or np.linalg.eigvalsh(V)[:, -1].max() < EXACT
            noisy = self.link.route == "points" and residuals[-1] < NOISY * self.tol
            if leaps and not noisy and not done and len(recent) == 4:
                before, V = V, leap(*recent)
                recent = [V]
            trajectory.append(V.mean(axis=0))
            if done:
                return Run(V, trajectory, True, residuals[1:], found, rate=rate)
            if noisy and hovers(recent, self.tol):
                V = np.mean(recent[-HOVER:], axis=0)
                return Run(V, [*trajectory, V.mean(axis=0)], True, residuals[1:], found, rate=0.5)
            if _stagnates(residuals[mark:], self.tol):
                if not leaps:
                    break
                leaps, mark = False, len(residuals)
        return Run(V, trajectory, False, residuals[1:], found, rate=rate)


@dataclass
class Run:
    """How an iteration ended; ``reason`` says why its numbers cannot be trusted, if they cannot."""

    V: np.ndarray
    trajectory: list[np.ndarray]
    converged: bool
    residuals: list[float]
    found: Gain
    reason: str = ""
    rate: float = 0.0

    @property
    def distance(self) -> float:
        """How far the fixed point still is, if the residuals go on to fall by the last ratio of two steps."""
        rate = min(self.rate, 0.999)
        return self.residuals[-1] * rate / (1 - rate)


def step(V: np.ndarray, S: np.ndarray, alpha: float, side: float = 0.0) -> np.ndarray:
    """The next V (R, r, r): (I + Qh)^-1 with Qh = alpha L^-1 S L^-1 + side I."""
    v, basis = np.linalg.eigh(V)
    L = (basis * np.sqrt(np.clip(v, 0.0, None))[:, None, :]) @ basis.swapaxes(1, 2)
    # The same matrix as the formula's, without L^-1: a direction that is known exactly has L = 0.
    new = L @ np.linalg.solve((1 + side) * V + alpha * S, L)
    return np.asarray(0.5 * (new + new.swapaxes(1, 2)))


def leap(first: np.ndarray, second: np.ndarray, third: np.ndarray, V: np.ndarray) -> np.ndarray:
    """V (R, r, r) after four iterates, moved to where a geometric series of its changes ends."""
    v, basis = np.linalg.eigh(V)
    changes = [b - a for a, b in ((first, second), (second, third), (third, V))]
    one, two, three = (np.einsum("kia,kij,kja->ka", basis, change, basis) for change in changes)
    q = 1 - v
    with np.errstate(all="ignore"):
        ratio, drift = three / two, np.abs(three / two - two / one)
        # The ratio moves by the drift in a step of size three, and the leap is ratio / (1 - ratio) times as long.
        length = np.maximum(1.0, ratio / np.abs(1 - ratio))
        # A growing change has no end; it is followed where the map is linear, for small overlaps.
        whole = (drift * length < GEOMETRIC * np.abs(1 - ratio)) & ((ratio < 1) | (q < SMALL / LEAP))
        # Elsewhere only so many terms that a drift of the ratio changes their size by GEOMETRIC.
        terms = np.where(whole, np.inf, np.minimum(np.sqrt(2 * GEOMETRIC / drift), LEAP))
        total = np.where(whole & (ratio >= 1), np.inf, ratio * (1 - ratio**terms) / (1 - ratio))
        trusted = (ratio > 0) & (terms >= 1) & np.isfinite(ratio) & (three != 0)
        end = v + np.where(trusted, three * total, 0.0)
    low, high = np.maximum(v / LEAP, 1 - LEAP * q), np.minimum(v * LEAP, 1 - q / LEAP)
    # Of an overlap that is neither small nor nearly one the slope changes on the way.
    room = np.where(np.minimum(v, q) > SMALL, MODERATE * np.minimum(v, q), 1.0)
    moved = np.clip(end, np.maximum(low, v - room), np.minimum(high, v + room))
    return np.asarray((basis * moved[:, None, :]) @ basis.swapaxes(1, 2))


def vanishes(first: np.ndarray, second: np.ndarray, third: np.ndarray) -> np.ndarray:
    """Of which scrambles all eigenvalues of three iterates V (R, r, r) fall to zero by a constant factor, (R,)."""
    one, two, three = map(np.linalg.eigvalsh, (first, second, third))
    with np.errstate(all="ignore"):
        steady = (three < FALLS * two) & (np.abs(three / two - two / one) < 1 - FALLS)
    return np.asarray(((three > 0) & (three <= NEAR) & steady).all(axis=1))


def hovers(iterates: list[np.ndarray], tol: float) -> bool:
    """Whether the mean of HOVER iterates differs from that of the HOVER before by no more than their noise."""
    if len(iterates) < 2 * HOVER:
        return False
    before, after = np.stack(iterates[-2 * HOVER : -HOVER]), np.stack(iterates[-HOVER:])
    noise = after.std(axis=0, ddof=1) / np.sqrt(HOVER)
    return bool((np.abs(after.mean(axis=0) - before.mean(axis=0)) <= np.maximum(tol, 3 * noise)).all())


def _small_settled(V: np.ndarray, new: np.ndarray) -> bool:
    """Whether small eigenvalues of Q and V settle relative to their size: one may still grow or fall at every step."""
    eye = np.eye(V.shape[1])
    for old, now in ((V, new), (eye - V, eye - new)):
        before, after = np.linalg.eigvalsh(old), np.linalg.eigvalsh(now)
        small = before < SMALL
        if not (np.abs(after - before) <= SETTLED * np.abs(before) + ZERO)[small].all():
            return False
    return True


def _stagnates(residuals: list[float], tol: float) -> bool:
    """Whether the residual stays where it was; one that grows or passes a peak is a direction being learned."""
    window = residuals[-1 - GUARD :]
    if len(window) <= GUARD or window[-1] <= tol:
        return False
    return min(window) > 0.9 * window[0] and max(window) < 1.1 * window[0]
