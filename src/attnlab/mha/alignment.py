r"""Comparing two layers up to what no set of examples can tell apart.

Three equivalences hold for every number of tokens: the order of the heads; a head with W = 0 is free; heads with equal
Theta only show the sum of their W. With two tokens :math:`\sigma(-t) = 1 - \sigma(t)` adds a fourth,

.. math:: \mathrm{head}(\Theta, W) + \mathrm{head}(-\Theta, W) = \mathrm{head}(0, 2W) \qquad (k = 2),

so heads may be flipped, :math:`(\Theta_i, W_i) \to (-\Theta_i, -W_i)` for i in S, when :math:`\sum_{i \in S} W_i = 0`
or when a head with Theta = 0 takes up the linear term (derived here).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from scipy.optimize import linear_sum_assignment

from attnlab.common.arrays import ArrayLike
from attnlab.common.validation import integer, positive
from attnlab.mha.layer import check_layer

# Beyond this many heads not all subsets that can be flipped are looked at, only pairs and the whole.
_MAX_SUBSET_HEADS = 12


@dataclass(frozen=True)
class Equivalences:
    """The freedom of one layer beyond the order of its heads; empty tuples mean none.

    Attributes
    ----------
    free : heads with W = 0, whose Theta nothing depends on.
    merged : groups of heads with equal Theta (at k = 2 up to sign), of which only a sum of W is seen.
    flipped : at k = 2, the smallest sets of heads that can change sign together.
    """

    free: tuple[int, ...]
    merged: tuple[tuple[int, ...], ...]
    flipped: tuple[tuple[int, ...], ...]

    @property
    def unique(self) -> bool:
        """Whether only the order of the heads is left open."""
        return not (self.free or self.merged or self.flipped)

    def __str__(self) -> str:
        parts = [f"heads {list(self.free)} have W = 0, so their Theta is free"] * bool(self.free)
        parts += [
            f"heads {list(g)} have the same Theta (up to sign at k = 2), only a sum of W shows" for g in self.merged
        ]
        parts += [
            f"heads {list(s)} can change sign together at k = 2 (the sum of their W vanishes)" for s in self.flipped
        ]
        return "; ".join(parts) if parts else "unique up to the order of the heads"


@dataclass(frozen=True)
class Alignment:
    """How far a layer is from a reference, after the best use of the equivalences.

    Attributes
    ----------
    theta_error : worst head's ||Theta - Theta_ref|| / ||Theta_ref||; infinite when a reference head has no partner.
    w_error : ||W - W_ref|| / ||W_ref|| over all heads together, extra heads and linear terms included.
    permutation : for each reference head (after merging) the head of the layer that matches it, -1 for none.
    signs : +1, or -1 for heads matched after a flip (k = 2).
    reference_heads : number of reference heads after merging and dropping free ones.
    key_bias_error : worst matched head's ||c - c_ref|| / ||c_ref|| where biases were given, else None.
    """

    theta_error: float
    w_error: float
    permutation: tuple[int, ...]
    signs: tuple[int, ...]
    reference_heads: int
    key_bias_error: float | None = None


@dataclass(frozen=True)
class _Canonical:
    theta: np.ndarray
    w: np.ndarray
    index: tuple[int, ...]


def equivalences(Theta: ArrayLike, W: ArrayLike, tokens: int, *, tolerance: float = 1e-9) -> Equivalences:
    """Which heads of a layer examples of ``tokens`` tokens cannot identify, and why."""
    theta, w = check_layer(Theta, W)
    tokens = integer("tokens", tokens, low=1)
    tolerance = positive("tolerance", tolerance)
    # A pattern of one token is the number one: the outputs show the sum of all W and no Theta.
    if tokens == 1:
        return Equivalences((), (tuple(range(len(theta))),), ())
    free = _free_heads(w, tolerance)
    seen = [i for i in range(len(theta)) if i not in free]
    merged = tuple(tuple(group) for group in _groups(theta, seen, tolerance, signed=tokens == 2) if len(group) > 1)
    return Equivalences(tuple(free), merged, _flippable(theta, w, seen, tolerance) if tokens == 2 else ())


def align(
    Theta: ArrayLike,
    W: ArrayLike,
    Theta_ref: ArrayLike,
    W_ref: ArrayLike,
    *,
    tokens: int | None = None,
    tolerance: float = 1e-9,
    key_bias: ArrayLike | None = None,
    key_bias_ref: ArrayLike | None = None,
) -> Alignment:
    """Match the heads of a layer to a reference and measure the error of what is identifiable.

    Heads with W = 0 are dropped and heads with equal Theta merged on both sides (relative ``tolerance``), then heads
    are paired by the assignment with the smallest total relative distance. With ``tokens=2`` sign flips are allowed
    where the linear term they leave is made up for; it counts in ``w_error``. With ``key_bias`` and ``key_bias_ref``
    (m, d) the biases of matched heads are compared, too.

    >>> T, W = np.random.default_rng(0).standard_normal((2, 3, 4, 4))
    >>> align(T[[2, 0, 1]], W[[2, 0, 1]], T, W)
    Alignment(theta_error=0.0, w_error=0.0, permutation=(1, 2, 0), signs=(1, 1, 1), reference_heads=3,
              key_bias_error=None)
    """
    found = _canonical(*check_layer(Theta, W), tolerance)
    reference = _canonical(*check_layer(Theta_ref, W_ref), tolerance)
    if found.theta.shape[1:] != reference.theta.shape[1:] or found.w.shape[1:] != reference.w.shape[1:]:
        raise ValueError(f"layers of different widths: W {found.w.shape} and {reference.w.shape}")
    best = _match(found, reference, tolerance, signed=False)
    if tokens == 2:
        signed = _match(found, reference, tolerance, signed=True)
        # The linear term of a flip is in w_error: a flip must not be chosen for the error of Theta alone.
        best = min(best, signed, key=lambda a: max(a.theta_error, a.w_error))
    if key_bias is not None and key_bias_ref is not None:
        return replace(best, key_bias_error=_bias_error(best, key_bias, key_bias_ref, reference))
    return best


def _bias_error(matched: Alignment, bias: ArrayLike, bias_ref: ArrayLike, reference: _Canonical) -> float:
    """Worst relative distance of the key biases of matched heads."""
    if -1 in matched.permutation:
        return np.inf
    # A flip changes the sign of the key bias with that of Theta.
    found = np.array(matched.signs)[:, None] * np.asarray(bias)[list(matched.permutation)]
    true = np.asarray(bias_ref)[list(reference.index)]
    sizes = np.maximum(np.linalg.norm(true, axis=1), np.finfo(float).tiny)
    return float(np.max(np.linalg.norm(found - true, axis=1) / sizes))


def _free_heads(w: np.ndarray, tolerance: float) -> list[int]:
    sizes = np.linalg.norm(w, axis=(1, 2))
    return [i for i, size in enumerate(sizes) if size <= tolerance * max(sizes.max(), np.finfo(float).tiny)]


def _groups(theta: np.ndarray, heads: list[int], tolerance: float, *, signed: bool = False) -> list[list[int]]:
    """Heads with equal (or, if ``signed``, opposite) Theta together."""
    groups: list[list[int]] = []
    scale = tolerance * max(np.linalg.norm(theta, axis=(1, 2)).max(), np.finfo(float).tiny)
    for i in heads:
        for group in groups:
            distances = [np.linalg.norm(theta[i] - s * theta[group[0]]) for s in ((1, -1) if signed else (1,))]
            if min(distances) <= scale:
                group.append(i)
                break
        else:
            groups.append([i])
    return groups


def _flippable(theta: np.ndarray, w: np.ndarray, heads: list[int], tolerance: float) -> tuple[tuple[int, ...], ...]:
    """Minimal sets S whose W sum to zero; with a zero head in the layer every single head can flip."""
    sizes = np.linalg.norm(theta, axis=(1, 2))
    moving = [i for i in heads if sizes[i] > tolerance * sizes.max()]
    # A head with Theta = 0 takes up the linear term of any flip.
    if len(moving) < len(heads):
        return tuple((i,) for i in moving)
    scale = tolerance * np.linalg.norm(w, axis=(1, 2)).max()
    found: list[tuple[int, ...]] = []
    many = len(moving) > _MAX_SUBSET_HEADS
    for size in (2, len(moving)) if many else range(2, len(moving) + 1):
        for subset in combinations(moving, size):
            # Sizes rise, so that the smaller sets are known.
            minimal = not any(set(smaller) <= set(subset) for smaller in found)
            if minimal and np.linalg.norm(w[list(subset)].sum(axis=0)) <= scale * size:
                found.append(subset)
    return tuple(found)


def _canonical(theta: np.ndarray, w: np.ndarray, tolerance: float) -> _Canonical:
    """Free heads dropped, equal heads merged; ``index`` keeps the first of each group."""
    free = _free_heads(w, tolerance)
    groups = _groups(theta, [i for i in range(len(theta)) if i not in free], tolerance)
    first = [group[0] for group in groups]
    # The shape is given for the case that all heads are free.
    summed = np.array([w[group].sum(axis=0) for group in groups]).reshape(-1, *w.shape[1:])
    return _Canonical(theta[first], summed, tuple(first))


def _match(found: _Canonical, reference: _Canonical, tolerance: float, *, signed: bool) -> Alignment:
    signs = np.array([1, -1] if signed else [1])
    distance = np.array(
        [[[np.linalg.norm(s * t - r) for s in signs] for t in found.theta] for r in reference.theta]
    ).reshape(len(reference.theta), len(found.theta), len(signs))
    sizes, found_sizes = (np.linalg.norm(side.theta, axis=(1, 2)) for side in (reference, found))
    # A zero reference head is matched by absolute distance: nothing is relative to it.
    relative, best = distance.min(axis=2) / np.where(sizes > 0, sizes, 1.0)[:, None], distance.argmin(axis=2)
    # An infinite cost would forbid a pair, and the assignment could fail.
    own, other = linear_sum_assignment(np.minimum(relative, 1e150))
    partner = dict(zip(own.tolist(), other.tolist(), strict=True))
    # A head with Theta = 0 is the linear term: with flips it need not be there as a head.
    zero, found_zero = (s <= tolerance * max(sizes.max(initial=0.0), 1e-300) for s in (sizes, found_sizes))
    complete = all(r in partner or (signed and zero[r]) for r in range(len(sizes)))
    chosen = [int(signs[best[r, t]]) for r, t in partner.items()]
    return Alignment(
        theta_error=float(relative[own, other].max(initial=0.0)) if complete else np.inf,
        w_error=_w_error(found.w, reference.w, partner, chosen, found_zero, zero),
        permutation=tuple(found.index[partner[r]] if r in partner else -1 for r in range(len(reference.theta))),
        signs=tuple(chosen),
        reference_heads=len(reference.theta),
    )


def _w_error(
    w: np.ndarray, w_ref: np.ndarray, partner: dict[int, int], signs: list[int], zero: np.ndarray, zero_ref: np.ndarray
) -> float:
    """Relative distance of all projections; a flipped head leaves the linear term head(0, 2 W), which heads with
    Theta = 0 may take up.
    """
    missed, linear = np.where(zero_ref[:, None, None], 0.0, w_ref), w[zero].sum(axis=0) - w_ref[zero_ref].sum(axis=0)
    for (r, t), sign in zip(partner.items(), signs, strict=True):
        if not (zero[t] or zero_ref[r]):
            missed[r] = w_ref[r] - sign * w[t]
            linear = linear + (1 - sign) * w[t]
    # A head without a partner should not be there: all of its W is error.
    paired = {t for r, t in partner.items() if not zero_ref[r]}
    extra = w[[t for t in range(len(w)) if t not in paired and not zero[t]]]
    squared = np.sum(missed**2) + np.sum(linear**2) + np.sum(extra**2)
    return float(np.sqrt(squared / max(np.sum(w_ref**2), np.finfo(float).tiny)))
