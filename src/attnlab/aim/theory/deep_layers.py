"""Output strengths and recovery threshold of two or three attention layers on two to four tokens."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attnlab.aim.channels import NotSolved
from attnlab.aim.indices import Layout
from attnlab.aim.spectrum import check_rho, second_moment, small_noise_slope
from attnlab.common.prediction import Prediction
from attnlab.common.seeds import Seed, stream
from attnlab.common.validation import integer, nonnegative, positive, real

SIGMAS, UNRESOLVED = 4.0, 0.05  # standard errors, and share of E|g|^2, by which two estimates of it may differ


def layer_strengths(
    errors: Sequence[float] = (1.0, 1.0, 1.0),
    *,
    tokens: int = 2,
    skip: float = 1.0,
    beta: float = 1.0,
    samples: int = 512,
    points: int = 512,
    seed: Seed = 0,
) -> Prediction:
    r"""E|g_l|^2 of every layer for the centred prior and errors V_l, with error bars.

    The product of two estimates of g from independent ``points`` of importance sampling. It must equal
    :math:`E\langle g_l, z_l - \omega_l\rangle/V_l`, as for any posterior mean; where it does not, within four standard
    errors and 5 %, there is no value. The error holds the Monte Carlo error over ``samples`` outputs, the difference of
    the two, and the variance of one estimate, which is the size of its bias: with 18 dimensions (three layers, four
    tokens) 512 points leave 0.4 of E|g|^2 in the first layers, which only more points reduce.

    Source: derived here.  Status: heuristic (Monte Carlo over outputs and over the posterior of the first layers).
    """
    import jax

    from attnlab.aim.deep.posterior import output_functions, through
    from attnlab.aim.deep.posterior import points as normals_of

    V = np.array([real("errors", v, low=0.0, high=1.0, open_low=True) for v in errors])
    layers, tokens = integer("number of errors", len(V), low=2, high=3), integer("tokens", tokens, low=2, high=4)
    skip, beta, layout = float(nonnegative("skip", skip)), float(positive("beta", beta)), Layout(tokens, tokens)
    shape = (2, layers, integer("samples", samples, low=2), layout.p)
    normals, width = stream(seed, "theory", "aim").standard_normal(shape), V[:, None, None]
    omega = np.sqrt(second_moment(float("inf")) - width) * normals[0]
    z = omega + np.sqrt(width) * normals[1]
    with jax.enable_x64(True):
        h = layout.unwhiten(z)
        B = np.asarray(jax.vmap(lambda one: through(one, skip, beta))(h[:-1].swapaxes(0, 1)))
        H = B @ h[-1] @ B.swapaxes(1, 2)
        sets = [normals_of(layers, tokens, integer("points", points, low=64), number) for number in (1, 2)]
        first, second = (np.asarray(output_functions(H, omega, V, xi, skip=skip, beta=beta)) for xi in sets)
    squares, alignment = (first * second).sum(axis=2), ((first + second) / 2 * (z - omega) / width).sum(axis=2)
    # No row of a softmax shows the constant in h: p - 1 components are seen.
    if problem := unresolved(squares, alignment, (layout.p - 1) / V):
        raise NotSolved(f"{points} points do not resolve beta={beta:g}, {layers} layers, {tokens} tokens: {problem}")
    noise, off = squares.std(axis=1) / np.sqrt(samples), (squares - alignment).mean(axis=1)
    # Two independent estimates differ by twice the variance of one.
    variance = ((first - second) ** 2).sum(axis=2).mean(axis=1) / 2
    return Prediction(squares.mean(axis=1), np.sqrt(noise**2 + off**2 + variance**2), "heuristic")


def unresolved(squares: np.ndarray, alignment: np.ndarray, most: np.ndarray) -> str:
    """Why output functions are not those of a posterior mean; empty if they may be: for every layer, |g|^2 and
    <g, z - omega>/V of the sequences must have one mean, below ``most`` = k/V.
    """
    off, size = squares - alignment, squares.mean(axis=1)
    noise, scatter = off.std(axis=1) / np.sqrt(off.shape[1]), squares.std(axis=1) / np.sqrt(off.shape[1])
    agree = np.abs(off.mean(axis=1)) <= SIGMAS * noise + UNRESOLVED * np.abs(size)
    if (agree & (size <= most * (1 + UNRESOLVED) + SIGMAS * scatter)).all():
        return ""
    return (
        f"E|g|^2 = {size.round(3)} is not E<g, z - omega>/V = {alignment.mean(axis=1).round(3)} "
        f"(noise {noise.round(3)}, bound {most.round(3)})"
    )


def deep_recovery_threshold(rho: float = float("inf"), *, layers: int = 2, tokens: int = 2) -> Prediction:
    r"""The alpha from which on the state in which every layer is known is stable, the same for all layers:

    .. math:: \alpha = \frac{L D_\rho}{T^2 + T - 2}, \quad D_\rho = 2\rho - \rho^2 \ (\rho \le 1),\ 1 \ (\rho \ge 1)

    Small errors make the output linear in all indices, and then sum_l V_l E|g_l|^2 = k = (T^2 + T - 2)/2: a state in
    which all V_l shrink by one factor has V_l -> D V_l/(2 alpha E|g_l|^2 V_l), a factor of L D/(2 alpha k).

    Source: derived here.  Status: asymptotic (d -> infinity); says nothing about starts far away.

    >>> float(deep_recovery_threshold(0.5, layers=1)), float(deep_recovery_threshold(layers=2))
    (0.1875, 0.5)
    """
    layers, tokens = integer("layers", layers, low=1), integer("tokens", tokens, low=2)
    return Prediction(layers * small_noise_slope(check_rho(rho)) / (tokens**2 + tokens - 2), status="asymptotic")


def deep_weak_recovery_threshold(
    *, layers: int = 2, tokens: int = 2, skip: float = 1.0, beta: float = 1.0, samples: int = 2048, seed: Seed = 0
) -> Prediction:
    r"""For every layer, the ratio alpha / rho beyond which nothing known is unstable as rho -> 0:
    :math:`1/(2\,\mathbb{E}\|g_l\|^2(1, \dots, 1))`.

    Without knowledge the layers do not mix (E<g_l, g_m> = 0 by symmetry). The last layer has the lowest threshold;
    those of the others are upper bounds, because a layer that is learned helps the rest.

    Source: derived here.  Status: heuristic (Monte Carlo, see :func:`layer_strengths`).
    """
    found = layer_strengths((1.0,) * layers, tokens=tokens, skip=skip, beta=beta, samples=samples, seed=seed)
    threshold = 1 / (2 * found.value)
    return Prediction(threshold, threshold * found.error / found.value, "heuristic")
