r"""``python -m benchmarks.smi_second``: reference values of smi in a second way; writes docs/data/smi_second.csv.

Plain NumPy, nothing of attnlab. Two layers of attention: pseudo-random draws and polar nodes for the indices of layer
1 (the package: scrambled Sobol sequences and a square grid). Erf committee: no draws, quadrature over estimate and
output.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from scipy.optimize import brentq
from scipy.special import erf

FILE = Path(__file__).parents[1] / "docs/data/smi_second.csv"
STRETCH = 1.25  # of the drawn indices, whose fourth powers are averaged
BLOCKS = 32  # of draws, for errors
NODES = 64, 96  # radii and angles; half of them changes no digit shown
NOISE = 0.1  # of the erf committee


def mixing(x: np.ndarray, y: np.ndarray, skip: float) -> tuple[np.ndarray, ...]:
    """The entries of softmax(z z^T) + skip I for z = (x, y), by rows."""
    p, q = 1 / (1 + np.exp(-x * (x - y))), 1 / (1 + np.exp(y * (x - y)))
    return p + skip, 1 - p, 1 - q, q + skip


def output(z: np.ndarray, skip: float) -> np.ndarray:
    """Rows of softmax(u u^T), of which the first entries say all, for z (n, layer, token)."""
    a, b, c, d = mixing(z[:, 0, 0], z[:, 0, 1], skip)
    u, v = a * z[:, 1, 0] + b * z[:, 1, 1], c * z[:, 1, 0] + d * z[:, 1, 1]
    p, _, q, _ = mixing(u, v, 0.0)
    return np.stack([p, 1 - p, q, 1 - q], axis=1)


def layers(q1: float, q2: float, n: int, skip: float = 1.0, seed: int = 0) -> dict[str, tuple[float, float]]:
    """Where Q = diag(q1, q2) is a fixed point: alpha_a = q_a / S_a, and alpha_2 lambda of layer 1, with errors."""
    rng, v1, v2 = np.random.default_rng(seed), 1 - q1, 1 - q2
    x, w = np.polynomial.legendre.leggauss(NODES[0])
    # A(z) is even: without an estimate of layer 1 half of the angles are enough.
    radius, angle = 3.75 * (x + 1), (np.arange(NODES[1]) + 0.5) * (2 if q1 else 1) * np.pi / NODES[1]
    s = np.stack([np.outer(radius, f(angle)).ravel() for f in (np.cos, np.sin)])
    a, b, c, d = mixing(s[0], s[1], skip)
    det = a * d - b * c
    base = np.log(np.repeat(radius * w, NODES[1]) / np.abs(det)) - 0.5 * (s**2).sum(axis=0) / v1
    squares, twice = np.stack([s[0] ** 2, s[0] * s[1], s[1] ** 2], axis=1), np.array([1, 2, 1])
    sums = []
    for _ in range(n // 32):
        z, zeta = STRETCH * rng.standard_normal((32, 2, 2)), rng.standard_normal((32, 2, 2))
        weight = STRETCH**4 * np.exp(-0.5 * (1 - STRETCH**-2) * (z**2).sum(axis=(1, 2)))
        q, v = np.array([q1, q2])[:, None], np.array([v1, v2])[:, None]
        omega = q * z + np.sqrt(q * v) * zeta
        A = mixing(z[:, 0, 0], z[:, 0, 1], skip)
        u = A[0] * z[:, 1, 0] + A[1] * z[:, 1, 1], A[2] * z[:, 1, 0] + A[3] * z[:, 1, 1]
        t = np.outer(u[0], d / det) - np.outer(u[1], b / det), np.outer(u[1], a / det) - np.outer(u[0], c / det)
        even = base + (omega[:, 0] / v1) @ s - 0.5 * (t[0] ** 2 + t[1] ** 2) / v2
        odd = (t[0] * omega[:, 1, :1] + t[1] * omega[:, 1, 1:]) / v2
        even -= (even + np.abs(odd)).max(axis=1, keepdims=True)
        plus, minus = np.exp(even + odd), np.exp(even - odd)
        both = plus + minus
        norm = both.sum(axis=1)[:, None]
        m1, m2 = both @ s.T / norm, np.stack([((plus - minus) * x).sum(axis=1) for x in t], axis=1) / norm
        g1, g2 = (m1 - omega[:, 0]) / np.sqrt(v1), (m2 - omega[:, 1]) / np.sqrt(v2)
        G = both @ squares / norm - [1, 0, 1]
        sums.append([weight @ (x**2 * k).sum(axis=1) / 32 for x, k in ((g1, 1), (g2, 1), (G, twice))])
    S1, S2, F = np.array(sums).T

    def found(of: np.ndarray) -> tuple[float, float]:
        """Value and jackknife error over blocks."""
        blocks = of.reshape(-1, BLOCKS, of.shape[-1] // BLOCKS).mean(axis=2)
        left = [value(np.delete(blocks, i, axis=1).mean(axis=1)) for i in range(BLOCKS)]
        return value(blocks.mean(axis=1)), float(np.sqrt(BLOCKS - 1) * np.std(left))

    def value(means: np.ndarray) -> float:
        return float(q2 * means[1] / means[0] if len(means) == 2 else 1 / means[0])

    entries = {"alpha_2": found(S2[None] / q2), "growth": found(np.stack([S2, F]))}
    return entries if not q1 else entries | {"alpha_1": found(S1[None] / q1)}


def layer_1_threshold(skip: float, n: int, overlaps: tuple[float, float]) -> tuple[float, float]:
    """alpha where alpha lambda = 1, between two overlaps of layer 2: both are powers of 1 - q2 there to 1e-3."""
    low, high = (layers(0.0, q, n, skip, seed) for seed, q in enumerate(overlaps))
    alphas, growths = (np.log([x[name][0] for x in (low, high)]) for name in ("alpha_2", "growth"))
    slope = np.diff(growths)[0] / np.diff(alphas)[0]
    errors = [np.hypot(x["growth"][1] / x["growth"][0] / slope, x["alpha_2"][1] / x["alpha_2"][0]) for x in (low, high)]
    alpha = np.exp(alphas[0] - growths[0] / slope)
    share = -growths[0] / np.diff(growths)[0]
    return float(alpha), float(alpha * np.hypot((1 - share) * errors[0], share * errors[1]))


def generalization(q1: float, q2: float, n: int) -> dict[str, tuple[float, float]]:
    """Plug-in error, and half the squared distance of two outputs with one estimate: the Bayes error."""
    rng, q = np.random.default_rng(1), np.array([q1, q2])[:, None]
    omega = np.sqrt(q) * rng.standard_normal((n, 2, 2))
    y, again = (output(omega + np.sqrt(1 - q) * rng.standard_normal((n, 2, 2)), 1.0) for _ in range(2))
    both = {"plug-in": ((y - output(omega, 1.0)) ** 2).sum(axis=1), "bayes": 0.5 * ((y - again) ** 2).sum(axis=1)}
    return {name: (float(x.mean()), float(x.std() / np.sqrt(n))) for name, x in both.items()}


def committee(q: float) -> tuple[float, float]:
    """alpha(q) of the erf committee along (1, 1), and lambda along (1, -1)."""
    V, (x, w) = 1 - q, np.polynomial.hermite_e.hermegauss(41)
    u, v = (np.linspace(-6.5, 6.5, k) for k in (121, 81))
    prior = np.outer(np.exp(-(u**2) / 2), np.exp(-(v**2) / 2))
    y = np.linspace(-3.8, 3.8, 121)  # the mean output is at most sqrt 2, the noise has 0.32
    square, growth = 0.0, 0.0
    for at, weight in zip(np.sqrt(q) * x, w / w.sum() * (y[1] - y[0]) / prior.sum(), strict=True):
        z = at + np.sqrt(V) * u[:, None]
        mean = (erf((z + v) / 2) + erf((z - v) / 2)) / np.sqrt(2)
        law = np.exp(-((y[:, None, None] - mean) ** 2) / (2 * NOISE)) / np.sqrt(2 * np.pi * NOISE) * prior
        Z = np.maximum(law.sum(axis=(1, 2)), 1e-300)
        square += weight * ((law.sum(axis=2) @ u) ** 2 / Z).sum()
        growth += weight * ((law.sum(axis=1) @ (v**2 - 1)) ** 2 / Z).sum()
    return float(q / square), float(growth)


def committee_threshold() -> float:
    """Where alpha lambda = 1."""
    return committee(brentq(lambda q: np.prod(committee(q)) - 1, 0.9, 0.96, xtol=1e-6))[0]


def one_set(points: int, n: int = 400) -> tuple[float, float]:
    """S of layer 1 of three, at Q = 0 where it is 0, from one set of prior points: noise, 2/ESS."""
    rng, found = np.random.default_rng(2), []

    def before_last(z: np.ndarray) -> np.ndarray:
        first = np.stack(mixing(z[0, 0], z[0, 1], 1.0), axis=-1).reshape(-1, 2, 2)
        x, y = np.einsum("kij,jk->ik", first, z[1])
        return np.stack(mixing(x, y, 1.0), axis=-1).reshape(-1, 2, 2) @ first

    for _ in range(n):
        truth, z = rng.standard_normal((3, 2, 1)), rng.standard_normal((2, 2, points))
        B = before_last(z)
        last = np.linalg.solve(B, (before_last(truth[:2])[0] @ truth[2])[None])[..., 0]
        w = np.exp(-0.5 * (last**2).sum(axis=1)) / np.abs(np.linalg.det(B))
        found.append(((z[0] @ w / w.sum()) ** 2).sum())
    return float(np.mean(found)), float(np.std(found) / np.sqrt(n))


def rows(n: int) -> list[tuple[str, str, float, float]]:
    """Quantity, reference, second way and its error."""
    found = [
        (f"alpha at q2 = {q}, layer 1 unknown", reference, *layers(0.0, q, n)["alpha_2"])
        for q, reference in ((0.2, "0.2965(5)"), (0.5, "0.4042(6)"), (0.8, "0.5122(4)"), (0.9, "0.573(2)"))
    ]
    for skip, reference, overlaps in (
        (1.0, "0.718(4)", (0.97, 0.98)),
        (2.0, "0.720(4)", (0.985, 0.99)),
        (4.0, "about 0.72", (0.993, 0.996)),
    ):
        found.append((f"layer 1 threshold, c = {skip:g}", reference, *layer_1_threshold(skip, n, overlaps)))
    for q1, q2, alpha in ((0.2, 0.986, 0.8), (0.59, 0.9948, 0.9), (0.8, 0.9978, 0.95)):
        both = layers(q1, q2, n // 4)
        found += [(f"alpha_{a} at Q = ({q1}, {q2})", f"{alpha}", *both[f"alpha_{a}"]) for a in (1, 2)]
    for Q, plug_in, bayes in (
        ((0, 0), "0.3870(1)", "0.3024(1)"),
        ((0, 0.2), "0.3504(3)", "0.2947(1)"),
        ((0, 0.8), "0.168(1)", "0.152(1)"),
        ((0.572, 0.9945), "0.0237(4)", "0.0204(3)"),
    ):
        errors = generalization(*Q, 4 * n)
        found.append((f"plug-in error at Q = {Q}", plug_in, *errors["plug-in"]))
        found.append((f"Bayes error at Q = {Q}", bayes, *errors["bayes"]))
    found.append(("erf committee, specialisation", "5.7(1)", committee_threshold(), 0.0))
    for alpha, reference in ((1, "0.555(1)"), (4, "0.9014(6)")):
        q = brentq(lambda q, alpha=alpha: committee(q)[0] - alpha, 0.3, 0.99, xtol=1e-6)
        found.append((f"erf committee, q+ at alpha = {alpha}", reference, q, 0.0))
    found += [(f"three layers, noise of S from {k} points", "0", *one_set(k)) for k in (2**10, 2**12)]
    return found


if __name__ == "__main__":
    with FILE.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["quantity", "reference", "second way", "error"])
        for name, reference, value, error in rows(2**17):
            writer.writerow([name, reference, f"{value:.5g}", f"{error:.1g}" if error else ""])
