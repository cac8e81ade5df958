"""Where training starts: uniform on the spheres or on the manifold M, as vectors and as overlaps."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from attnlab.common.seeds import Seed, stream
from attnlab.common.validation import integer, one_of

STARTS = ("sphere", "manifold")


def overlaps_of(
    k: Float[np.ndarray, "*runs d"],
    v: Float[np.ndarray, "*runs d"],
    k_star: Float[np.ndarray, " d"],
    v_star: Float[np.ndarray, " d"],
) -> Float[np.ndarray, "*runs 5"]:
    """(kappa, nu, theta, eta, rho) of pairs (k, v)."""
    return np.stack([k @ k_star, v @ v_star, v @ k_star, k @ v_star, np.sum(k * v, axis=-1)], axis=-1)


def vectors(
    runs: int,
    k_star: Float[np.ndarray, " d"],
    v_star: Float[np.ndarray, " d"],
    *,
    start: str = "sphere",
    seed: Seed = 0,
) -> tuple[Float[np.ndarray, "runs d"], Float[np.ndarray, "runs d"]]:
    """Draw (k, v) of norm 1.

    ``"sphere"``: independent and uniform. ``"manifold"``: k orthogonal to v*, then v orthogonal to k* and to k.
    """
    one_of("start", start, STARTS)
    rng = stream(seed, "learner", "slr", "start")
    k, v = rng.standard_normal((2, integer("runs", runs, low=1), len(k_star)))
    if start == "manifold":
        k -= np.outer(k @ v_star, v_star)
        v -= np.outer(v @ k_star, k_star)
        # The part of k across k*: v can be made orthogonal to k along it and stays orthogonal to k*.
        side = k - np.outer(k @ k_star, k_star)
        v -= (np.sum(v * side, axis=1) / np.sum(side**2, axis=1))[:, None] * side
    return k / np.linalg.norm(k, axis=1, keepdims=True), v / np.linalg.norm(v, axis=1, keepdims=True)


def initial_overlaps(d: int, runs: int, *, start: str = "sphere", seed: Seed = 0) -> Float[np.ndarray, "runs 5"]:
    """Overlaps (kappa, nu, theta, eta, rho) of random initialisations in dimension d; exact zeros on the manifold.

    The law does not depend on the planted pair, so the first two basis vectors stand for it.

    Source: arXiv:2410.01537, section 5.  Status: exact in law.

    >>> initial_overlaps(400, 2, start="manifold")[:, 2:]
    array([[0., 0., 0.],
           [0., 0., 0.]])
    """
    k_star, v_star = np.eye(2, integer("d", d, low=4))
    overlaps = overlaps_of(*vectors(runs, k_star, v_star, start=start, seed=seed), k_star, v_star)
    if start == "manifold":
        # Rounding is not zero, and grows where M is unstable.
        overlaps[:, 2:] = 0.0
    return overlaps
