r"""All heads of a layer from value queries: separate one direction, label all others, then solve for Theta.

=========================  ===============================================================================
step                       what is found
=========================  ===============================================================================
one token                  the constant, the sum of projections, the error of an answer
one direction              the number of heads, their wW_i and logits (:mod:`.separation`)
all directions             wW_i and logits in one order of the heads (:mod:`.directions`)
logits at points u         Theta and the key biases: least squares, by rows and columns when the rank is small
=========================  ===============================================================================
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from attnlab.mha.queries.directions import (
    Reference,
    affine_fit,
    by_reference,
    by_separation,
    certainty,
    decode,
    weighted_fit,
)
from attnlab.mha.queries.oracle import Box, on_sphere
from attnlab.mha.queries.separation import (
    SCALES,
    UNKNOWN_HEADS,
    Separation,
    accepted,
    count_heads,
    points_for,
    separate,
)

# Logits of the strongest head have this root mean square: heads 30 times weaker are still seen.
TARGET = 1.2
SKETCH = 16
PILOT = 8  # points of the first slice that are spent on finding the length of tokens
# Rounds of the pilot, its factor of the length, and the shares at which logits are saturated, projections cancel and a
# row sees itself only.
_PILOTS, _STEP, _SATURATED, _CANCELLED, _ALONE = 5, 4.0, 0.4, 1e-3, 0.1
_NEW_DIRECTIONS = 3
_CLEAR_GAP = 100.0


@dataclass
class Heads:
    """A recovered layer and how it was found."""

    theta: np.ndarray
    w: np.ndarray
    key_bias: np.ndarray
    method: str
    n_iter: int
    detail: dict[str, Any] = field(default_factory=dict)


class Unseparated(RuntimeError):
    """No direction could be separated into heads that explain the answers."""


def first_direction(box: Box, n_heads: int | None, scale: float, rng: np.random.Generator) -> Separation:
    """The direction that labels the heads, on the best of several slices and of a few directions."""
    residuals = []
    scale = suitable_scale(box, scale, rng)
    for _ in range(_NEW_DIRECTIONS):
        w = on_sphere(1, box.d, scale, rng)[0]
        found = separate(box, w, n_heads, points_for(n_heads or UNKNOWN_HEADS) - PILOT, SCALES, rng)
        if accepted(found, box.noise):
            return found
        residuals.append(f"{found.residual:.1e} with {len(found.B)} heads")
    raise Unseparated(
        f"the answers are not explained by separate heads (residuals {', '.join(residuals)}; error of an answer "
        f"{box.noise:.1e}): heads may be more than d_out = {box.outputs} or their projections dependent"
    )


def suitable_scale(box: Box, scale: float, rng: np.random.Generator) -> float:
    r"""A length of tokens at which logits are of order one, from a few answers at random points and directions.

    Mixtures differ from :math:`w\bar W/2` by about :math:`t/4` of :math:`|w\bar W|` while logits t are small, and by
    half of it when they are saturated: in the first case the length is computed, in the second it is reduced and tried
    again. Where the projections cancel the given length is kept.
    """
    for _ in range(_PILOTS):
        # As many queries as the first slice saves by PILOT points fewer in each of its three kinds.
        u, w = on_sphere(3 * PILOT, box.d, scale, rng), on_sphere(3 * PILOT, box.d, scale, rng)
        middle = w @ box.w_sum / 2
        mixture = box.mixture(u, w)
        # Noise adds its square to the mean square.
        away = np.sqrt(max(float(np.mean((mixture - middle) ** 2)) - box.noise**2, 0.0))
        size = 2 * float(np.sqrt(np.mean(middle**2)))
        if size + away <= box.noise:
            raise ValueError("attention cannot be seen: all answers are zero up to their error (W = 0)")
        # Logits are odd in w, so that mixtures of any layer are at least size / 2 away from wWbar in the mean.
        if np.sqrt(np.mean((mixture - 2 * middle) ** 2)) < _ALONE * size:
            raise ValueError(
                "attention cannot be seen: the last row depends on its own token only (a causal layer that reads its "
                "tokens in the opposite order answers so)"
            )
        if size < _CANCELLED * (away + box.noise):
            return scale
        if away < 3 * box.noise:
            scale *= _STEP
        elif away > _SATURATED * size:
            scale /= _STEP
        else:
            # away = size t / 4, and t grows as the square of the length: this length makes t one.
            return scale * float(np.clip(np.sqrt(size / (4 * away)), 1 / _STEP**2, _STEP**2))
    return scale


def recover(
    box: Box, first: Separation, *, method: str, rank: int | str | None, extra: int, rng: np.random.Generator
) -> Heads:
    """The layer, once one direction is separated."""
    m, d = len(first.B), box.d
    # Two tokens enter a logit, which grows as the square of the length; w0 and its values grow with the length itself.
    grow = np.sqrt(TARGET / first.strengths.max())
    s, w0, B0 = float(np.linalg.norm(first.w)) * grow, grow * first.w, grow * first.B
    directions = s * box.Q
    known = _with_points(box, w0, B0, points_needed(d, m, rank, extra, box.bias), s, rng)
    if method == "reference":
        B, T = by_reference(box, directions, known, extra)
    else:
        B, T = by_separation(box, directions, known, rng)
    # The directions are s Q with Q orthogonal: its transpose takes them back to coordinates.
    w = np.einsum("jp,jmo->mpo", box.Q, B) / s
    if rank == "auto":
        known, T, rank = _measured_rank(box, directions, known, B, T, s, extra, rng)
    if rank is None or int(rank) >= d:
        coefficients = affine_fit(known.U, T, box.bias)
        theta = np.einsum("jmp,jq->mpq", coefficients[..., :d], box.Q) / s
        bias = np.einsum("jm,jq->mq", coefficients[..., -1], box.Q) / s if box.bias else np.zeros((m, d))
    else:
        theta, bias = _low_rank(box, known, T, w, s, int(rank), extra, rng)
    detail = {
        "singular_values": first.singular_values,
        "start": first.start,
        "residual": first.residual,
        "sum_check": float(np.abs(first.B.sum(axis=0) - first.w @ box.w_sum).max()),
        "rank": d if rank is None else int(rank),
        "length": s,
    }
    return Heads(theta, w, bias, method, first.n_iter, detail)


def points_needed(d: int, m: int, rank: int | str | None, extra: int, bias: bool) -> int:
    """Points u at which the logits of all directions are read."""
    unknowns = SKETCH - extra if rank == "auto" else d if rank is None else int(rank)
    # At least m: the answers of a direction have to span its m values.
    return max(min(unknowns, d) + bias, m) + extra


def _with_points(box: Box, w0: np.ndarray, B0: np.ndarray, n: int, s: float, rng: np.random.Generator) -> Reference:
    """New points on the sphere (the first at zero when there are biases) and their logits in the first direction."""
    U = on_sphere(n, box.d, s, rng)
    if box.bias:
        U[0] = 0.0
    return Reference(w0, B0, U, decode(box.mixture(U, w0), B0))


def _measured_rank(
    box: Box,
    directions: np.ndarray,
    known: Reference,
    B: np.ndarray,
    T: np.ndarray,
    s: float,
    extra: int,
    rng: np.random.Generator,
) -> tuple[Reference, np.ndarray, int | None]:
    """Double the number of points until every head's rows show a rank; None when they fill the space."""
    d = box.d
    size = float(np.sqrt(np.mean(box.w_sum**2) * d)) * s
    floor = 1e3 * max(box.noise, 1e-15) / size
    while True:
        rows = _rows(box, known, T, s)
        ranks = [_visible_rank(np.linalg.svd(r, compute_uv=False), floor) for r in rows]
        # A rank counts when four further rows have shown nothing new; otherwise the sketch may be too small to see it.
        if max(ranks) <= min(rows.shape[1] - 4, d - 1):
            return known, T, max(ranks)
        if len(known.U) >= d + extra + box.bias:
            return known, T, None
        more = min(len(known.U), d + extra + box.bias - len(known.U))
        U = on_sphere(more, d, s, rng)
        new = np.stack([decode(box.mixture(U, w), b) for w, b in zip(directions, B, strict=True)])
        known = known._replace(U=np.concatenate([known.U, U]))
        T = np.concatenate([T, new], axis=1)


def _visible_rank(sizes: np.ndarray, floor: float) -> int:
    """The rank at a clear gap of the singular values; their number where there is no gap."""
    rank = count_heads(sizes, floor * sizes[0])
    # After the last value nothing follows: the comparison with the first then fails, as it should.
    following = max(sizes[rank], floor * sizes[0]) if rank < len(sizes) else sizes[0]
    return rank if sizes[rank - 1] > _CLEAR_GAP * following else len(sizes)


def _rows(box: Box, known: Reference, T: np.ndarray, s: float) -> np.ndarray:
    """U Theta of every head, ``(m, n, d)``, from the logits of all directions."""
    # With biases the first point is u = 0, whose logits are those of the key bias alone.
    logits = T[:, 1:] - T[:, :1] if box.bias else T
    return np.einsum("jnm,jq->mnq", logits, box.Q) / s


def _low_rank(
    box: Box, known: Reference, T: np.ndarray, w: np.ndarray, s: float, rank: int, extra: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Row spaces from the points u, columns from a few random directions with the values now known."""
    m, d, _ = w.shape
    bias = np.einsum("jm,jq->mq", T[:, 0], box.Q) / s if box.bias else np.zeros((m, d))
    # A row of U Theta in which some logit is saturated is inexact as a whole: it counts as its worst entries allow.
    worst = np.sqrt(np.mean(certainty(T[:, 1:] if box.bias else T) ** -2.0, axis=0)).T[..., None]
    rows = np.stack([np.linalg.svd(r, full_matrices=False)[2][:rank] for r in _rows(box, known, T, s) / worst])
    # Row spaces leave the columns open: all s q_j are asked for in a few directions, whose values W now gives.
    sketch = on_sphere(rank + extra, d, s, rng)
    logits = np.stack([decode(box.mixture(s * box.Q, om), np.einsum("p,mpo->mo", om, w)) for om in sketch])
    theta = np.empty((m, d, d))
    for i in range(m):
        seen = logits[:, :, i].T
        # The key bias adds c_i om^T to every logit of the direction om.
        left = weighted_fit(sketch @ rows[i].T, seen - sketch @ bias[i], certainty(seen))
        theta[i] = box.Q.T @ left @ rows[i] / s
    return theta, bias
