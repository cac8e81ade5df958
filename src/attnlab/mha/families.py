r"""Planted layers by name: what makes a layer easy or hard for which learner.

All families start from the same generic draw (Gaussian :math:`\Theta_i` of Frobenius norm rho, W of variance 1/d) and
bend it; head 0 keeps its generic value where the family allows.

==================  =======================================================================
family              what is special
==================  =======================================================================
generic             nothing
weak                heads 1.. have W scaled by 0.01
dispersed           norms 25 and 0.5 in turn (rho is not used)
close               :math:`\Theta_i \propto \Theta_0 + 0.1\,\Theta_i`
opposite            :math:`\Theta_i \propto \mp\Theta_0 + 0.2\,\Theta_i`
opposite_values     :math:`W_i = -W_0 + 0.1\,W_i`
near_identity       :math:`\Theta_i \propto \pm(\sqrt d/2)\,I + 0.5\,G/\sqrt d`
parallel            :math:`\Theta_i = 2^{i-1}\,\Theta_0`
==================  =======================================================================
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Layer = tuple[np.ndarray, np.ndarray]


def generic(rho: float, d: int, m: int, d_out: int, seed: int) -> Layer:
    """Gaussian attention matrices of norm rho, head by head, then Gaussian projections of variance 1/d."""
    rng = np.random.default_rng(seed)
    theta = np.stack([rng.standard_normal((d, d)) for _ in range(m)])
    return _with_norm(theta, rho), rng.standard_normal((m, d, d_out)) / np.sqrt(d)


def plant(family: str, rho: float, d: int, m: int, d_out: int, seed: int) -> Layer:
    """The planted layer of a family."""
    theta, w = generic(rho, d, m, d_out, seed)
    return FAMILIES[family](theta, w, rho)


def _with_norm(theta: np.ndarray, norm: float | np.ndarray) -> np.ndarray:
    scaled: np.ndarray = np.reshape(norm, (-1, 1, 1)) * theta / np.linalg.norm(theta, axis=(1, 2), keepdims=True)
    return scaled


def _signs(m: int) -> np.ndarray:
    return ((-1.0) ** np.arange(m))[:, None, None]


def _keep(theta: np.ndarray, w: np.ndarray, rho: float) -> Layer:
    return theta, w


def _weak(theta: np.ndarray, w: np.ndarray, rho: float) -> Layer:
    return theta, np.concatenate([w[:1], 0.01 * w[1:]])


def _dispersed(theta: np.ndarray, w: np.ndarray, rho: float) -> Layer:
    return _with_norm(theta, np.resize([25.0, 0.5], len(theta))), w


def _close(theta: np.ndarray, w: np.ndarray, rho: float) -> Layer:
    return np.concatenate([theta[:1], _with_norm(theta[0] + 0.1 * theta[1:], rho)]), w


def _opposite(theta: np.ndarray, w: np.ndarray, rho: float) -> Layer:
    bent = _with_norm(_signs(len(theta)) * theta[0] + 0.2 * theta, rho)
    return np.concatenate([theta[:1], bent[1:]]), w


def _opposite_values(theta: np.ndarray, w: np.ndarray, rho: float) -> Layer:
    return theta, np.concatenate([w[:1], -w[0] + 0.1 * w[1:]])


def _near_identity(theta: np.ndarray, w: np.ndarray, rho: float) -> Layer:
    m, d, _ = theta.shape
    gaussian = theta * d / rho  # entries of unit variance up to O(1/d)
    return _with_norm(_signs(m) * np.sqrt(d) / 2 * np.eye(d) + 0.5 * gaussian / np.sqrt(d), rho), w


def _parallel(theta: np.ndarray, w: np.ndarray, rho: float) -> Layer:
    return theta[0] * 2.0 ** (np.arange(len(theta)) - 1)[:, None, None], w


FAMILIES: dict[str, Callable[[np.ndarray, np.ndarray, float], Layer]] = {
    "generic": _keep,
    "weak": _weak,
    "dispersed": _dispersed,
    "close": _close,
    "opposite": _opposite,
    "opposite_values": _opposite_values,
    "near_identity": _near_identity,
    "parallel": _parallel,
}
