r"""The iteration of state evolution, for all scrambles of the points side by side.

.. math:: V_{new} = L \big((1 + \epsilon) L^2 + \alpha S\big)^{-1} L, \qquad V = L^2,\; Q = I - V

Each scramble runs its own fixed point on its own points. The map is then deterministic and converges, and the spread of
the ends is the error bar. Averaging S over the scrambles in one iteration would hide the error near a transition, where
the map amplifies it.
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
ZERO = 1e-13  # a rotation to eigenvectors and back leaves this much where Q vanishes
GUARD = 50  # iterations in which the residual must fall or grow by 10 %


@dataclass(frozen=True)
class Map:
    """The map V -> V_new of one link at one alpha, and when its iteration ends."""

    link: Link
    alpha: float
    points: Points
    damping: float = 0.0
    tol: float = 1e-5
    max_iter: int = 500

    def run(self, V: np.ndarray, side: float = 0.0, rule: Rule | None = None) -> Run:
        """Iterate from V (R, r, r) with ``side`` information in every step."""
        trajectory, residuals = [V.mean(axis=0)], [np.inf]
        for _ in range(self.max_iter):
            found = gain(self.link, V, self.points, rule)
            rule = found.rule
            if reason := found.alarm:
                return Run(V, trajectory, False, [np.nan], found, reason)
            new = step(V, found.product, self.alpha, side)
            residuals.append(float(np.abs(new - V).max()))
            settled = residuals[-1] <= self.tol and _small_settled(V, new)
            V = self.damping * V + (1 - self.damping) * new
            trajectory.append(V.mean(axis=0))
            if settled or np.linalg.eigvalsh(V)[:, -1].max() < EXACT:
                return Run(V, trajectory, True, residuals[1:], found)
            if _stagnates(residuals[1:], self.tol):
                break
        return Run(V, trajectory, False, residuals[1:], found)


@dataclass
class Run:
    """How an iteration ended; ``reason`` says why its numbers cannot be trusted, if they cannot."""

    V: np.ndarray
    trajectory: list[np.ndarray]
    converged: bool
    residuals: list[float]
    found: Gain
    reason: str = ""

    @property
    def distance(self) -> float:
        """How far the fixed point still is, if the residuals go on to fall as they did in the last step."""
        last, before = self.residuals[-1], self.residuals[-2] if len(self.residuals) > 1 else np.inf
        rate = min(last / before, 0.999) if before > 0 else 0.0
        return last * rate / (1 - rate)


def step(V: np.ndarray, S: np.ndarray, alpha: float, side: float = 0.0) -> np.ndarray:
    """The next V (R, r, r): (I + Qh)^-1 with Qh = alpha L^-1 S L^-1 + side I."""
    v, basis = np.linalg.eigh(V)
    L = (basis * np.sqrt(np.clip(v, 0.0, None))[:, None, :]) @ basis.swapaxes(1, 2)
    new = L @ np.linalg.solve((1 + side) * V + alpha * S, L)
    return np.asarray(0.5 * (new + new.swapaxes(1, 2)))


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
