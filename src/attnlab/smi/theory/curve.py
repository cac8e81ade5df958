r"""The scalar branch: where one overlap describes all, the whole curve alpha(q) without iteration.

With Q = q P for a projector P onto the learned directions, a fixed point of state evolution is q = alpha S(q), hence
alpha(q) = q / S(q): stable and unstable parts alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab.common.advice import advise
from attnlab.common.arrays import ArrayLike
from attnlab.common.prediction import Prediction
from attnlab.common.validation import finite_array, integer
from attnlab.smi.check import checked
from attnlab.smi.draws import REPLICATES, power_of_two
from attnlab.smi.link import Link
from attnlab.smi.posterior.moments import Rule, first_rule
from attnlab.smi.task import Task
from attnlab.smi.theory.gains import Gain, Points, gain, points_of


@dataclass(frozen=True, eq=False, repr=False)
class Curve(Prediction):
    """``value`` is alpha(q) and ``error`` its standard error, for each q.

    Parameters
    ----------
    q, S, S_error : the overlaps, and the information gained from one sequence along the learned directions.
    resolved : for each q, whether its numbers can be trusted; if not, they are NaN.
    samples : S of each scramble, (replicates, len(q)).
    """

    q: Any = None
    S: Any = None
    S_error: Any = None
    resolved: Any = None
    samples: Any = None


@dataclass(frozen=True)
class Branch:
    """Q = q P of one link, with the points and the rule that are shared by all q."""

    link: Link
    P: np.ndarray
    points: Points

    def gain(self, q: float, rule: Rule | None = None) -> Gain:
        """S at one overlap."""
        V = np.eye(self.link.rank) - q * self.P
        return gain(self.link, np.repeat(V[None], len(self.points.normals), axis=0), self.points, rule)

    def along(self, found: Gain) -> np.ndarray:
        """S of each scramble along the branch."""
        # On a branch P S P is a multiple of P; this is the mean over its directions.
        return np.asarray(np.einsum("kab,ab->k", found.product, self.P) / np.trace(self.P))

    def leaves(self, found: Gain) -> str:
        """Why q P does not stay of this form; empty if it does."""
        rest = found.product - self.along(found)[:, None, None] * self.P
        mean, error = rest.mean(axis=0), rest.std(axis=0, ddof=1) / np.sqrt(len(rest))
        # Beyond the noise of the scrambles and the accuracy of the integration, which all of them share.
        wrong = np.abs(mean) > np.maximum(5 * error, 1e-3 * found.size + 1e-12)
        if not wrong.any():
            return ""
        a, b = np.unravel_index(np.argmax(np.abs(mean) * wrong), mean.shape)
        return f"Q = q P is not a branch of this link: S[{a}, {b}] differs from s P by {mean[a, b]:.3g}"


def branch(link: Link, direction: Any, draws: int, replicates: int) -> Branch:
    """The branch along a direction, or on all directions with the same overlap for an identity matrix."""
    if direction is None:
        if link.rank > 1:
            raise ValueError(
                f"direction must be a vector of length {link.rank} or a projector for a link of rank {link.rank}; "
                f"use state_evolution where no scalar describes Q"
            )
        direction = np.ones(1)
    u = finite_array("direction", direction)
    if u.shape == (link.rank,) and u.any():
        P = np.outer(u, u) / (u @ u)
    elif u.shape == (link.rank, link.rank) and np.allclose(u, u.T) and np.allclose(u @ u, u) and u.any():
        P = u
    else:
        raise ValueError(
            f"direction must be a vector of length {link.rank} or a projector of that size, not zero; got {direction!r}"
        )
    # The points of state evolution: its fixed points lie on the curve, without a second error of integration.
    return Branch(link, P, points_of(link, draws, replicates, "state evolution"))


def curve(
    link: str | Link | Task,
    q: ArrayLike,
    direction: ArrayLike | None = None,
    *,
    draws: int = 2**11,
    replicates: int = REPLICATES,
    nodes: int | None = None,
) -> Curve:
    r"""Sample complexity alpha(q) at which an overlap q is a fixed point of state evolution.

    .. math:: \alpha(q) = q / S(q), \qquad Q = q P

    Parameters
    ----------
    link : a :class:`~attnlab.smi.Link`, the name of a shipped one, or a task.
    q : one or more overlaps in (0, 1).
    direction : the learned direction (the others have no overlap), or a projector such as the identity if all have
        the same; not needed for rank 1. A direction that state evolution leaves is reported by a warning.
    draws, replicates, nodes : as in :func:`state_evolution`.

    Where alpha(q) falls the branch is unstable. Source: derived here.  Status: asymptotic.

    >>> found = curve("attention", [1e-4, 0.59201], draws=2**13)
    >>> [round(float(alpha), 2) for alpha in found]
    [0.17, 0.4]
    """
    link = checked(link)
    draws, replicates = power_of_two("draws", draws), integer("replicates", replicates, low=2)
    overlaps = np.atleast_1d(finite_array("q", q)).astype(float)
    if overlaps.ndim != 1 or not ((overlaps > 0) & (overlaps < 1)).all():
        raise ValueError(f"q must be overlaps in (0, 1), got {q!r}")
    along = branch(link, direction, draws, replicates)
    rule, samples, resolved = first_rule(link, nodes), [], []
    for at in overlaps:
        found = along.gain(at, rule)
        # The next overlap begins with the nodes that this one needed.
        rule = found.rule
        if reason := found.alarm or along.leaves(found):
            advise(f"the branch at q = {at:g} is not resolved: {reason}", stacklevel=2)
        resolved.append(not reason)
        samples.append(along.along(found) if not reason else np.full(replicates, np.nan))
    return _curve(overlaps, np.stack(samples, axis=1), np.array(resolved), np.ndim(q))


def _curve(q: np.ndarray, samples: np.ndarray, resolved: np.ndarray, ndim: int) -> Curve:
    S, S_error = samples.mean(axis=0), samples.std(axis=0, ddof=1) / np.sqrt(len(samples))
    with np.errstate(divide="ignore", invalid="ignore"):
        # Where a sequence tells nothing, no number of them suffices.
        alpha = np.where(S > 0, q / S, np.inf * np.sign(q))
        error = np.where(S > 0, alpha * S_error / S, 0.0)
    alpha = np.where(resolved, alpha, np.nan)
    if ndim == 0:
        alpha, error = alpha[0], error[0]
    return Curve(
        alpha,
        error,
        "asymptotic",
        bool(resolved.all()),
        q=q,
        S=S,
        S_error=S_error,
        resolved=resolved,
        samples=samples,
    )
