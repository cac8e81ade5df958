"""What bounds an AMP iteration: matrix products at the rate of their shapes, the spectrum, and work on single rows.

A single exponent does not describe these times: the rate of a product still grows with d, and the spectrum, d^3, is a
third of an iteration at d = 100. The model adds up parts that are measured on their own; one constant is fitted, the
time of the work on the n d entries of the tokens that lies between the products. Then whether products could replace
the spectrum, by a polynomial of R in place of its eigendecomposition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.polynomial import Chebyshev

from attnlab import aim
from attnlab.aim.messages.blas import BlasMessages
from benchmarks.aim import RHO, SIZES, fitted_times, messages, spectral_of
from benchmarks.harness import Row, alternate, middle

PARTS = ("products", "spectrum", "rows")
# Degrees that are tried, and the share of the error by which a polynomial may change it.
DEGREES, SAME = (4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256), 1e-3


def tiled_products(held: BlasMessages) -> Callable[[], Any]:
    """The two products of a sweep with its tiles, and nothing else."""
    x, y = np.ones((2, held.tile, held.d), dtype=held.dtype)
    S, full = np.ones((held.d, held.d), dtype=held.dtype), held.n // held.tile

    def call() -> None:
        for _ in range(full):
            np.matmul(x, S, out=y)
            x.T @ y
        if rest := held.n - full * held.tile:
            x[:rest] @ S, x[:rest].T @ y[:rest]

    return call


def fitted_rows(known: np.ndarray, entries: np.ndarray, measured: np.ndarray) -> np.ndarray:
    """The times of the rows: a constant a token entry that makes the relative errors smallest; none if negative."""
    x, y = entries / measured, (measured - known) / measured
    return np.asarray(max(float(x @ y / (x @ x)), 0.0) * entries)


def amp_iteration(sizes: Sequence[int] = SIZES, repeats: int = 5) -> list[Row]:
    """The largest error of the model over the sizes, and the share of each part of an iteration."""
    held = [messages(d) for d in sizes]
    products = [t.median for t in alternate([tiled_products(part) for part, _ in held], repeats)]
    spectrum = [t.median for t in alternate([spectral_of(noisy(S, 0.6)) for _, S in held], repeats)]
    measured = np.array([middle(fitted_times(d))[0] for d in sizes])
    known = np.add(products, spectrum)
    rows = fitted_rows(known, np.array([part.n * part.d for part, _ in held], dtype=float), measured)
    errors = (known + rows) / measured - 1
    worst = float(errors[np.abs(errors).argmax()])
    times = ", ".join(f"d = {d}: {1e3 * t:.3g} ms ({e:+.0%})" for d, t, e in zip(sizes, measured, errors, strict=True))
    found = [Row("AMP iteration, model", worst, "of the time", "within 15 %", f"largest error of the model; {times}")]
    for d, *parts in zip(sizes, products, spectrum, rows, strict=True):
        shares = ", ".join(f"{name} {1e3 * t:.2g} ms" for name, t in zip(PARTS, parts, strict=True))
        largest = PARTS[int(np.argmax(parts))]
        found.append(Row(f"AMP iteration, d = {d}", max(parts) / sum(parts), f"of it is {largest}", "", shares))
        free = sum(parts) / (sum(parts) - parts[1])
        found.append(Row(f"AMP iteration, d = {d}, spectrum for free", free, "x", "", "by the model"))
    return found


def noisy(S: np.ndarray, noise: float) -> np.ndarray:
    """S + sqrt(noise) GOE: the eigendecomposition of S alone, half of whose eigenvalues are zero, would be faster."""
    G = np.random.default_rng(0).standard_normal(S.shape)
    return np.asarray(S + np.sqrt(noise / (2 * len(S))) * (G + G.T))


def products_of(degree: int) -> int:
    """The fewest matrix products for a polynomial of this degree in a matrix (Paterson and Stockmeyer, 1973)."""
    return min(s - 1 + degree // s for s in range(1, degree + 1))


def needed_degree(x: np.ndarray, truth: np.ndarray, noise: float) -> int:
    """The degree at which a Chebyshev polynomial of the shrinkage has the mean square error of the shrinkage.

    ``x`` are the eigenvalues of R and ``truth`` the diagonal of S in its eigenvectors: the error off the diagonal is
    the same for every estimator of this form.
    """

    def shrink(y: np.ndarray) -> np.ndarray:
        return aim.spectrum.shrink(y, noise, RHO, clip=True)

    off = aim.spectrum.denoising_mmse(noise, RHO) * len(x)
    for degree in DEGREES:
        series = Chebyshev.interpolate(shrink, degree, domain=[float(x[0]), float(x[-1])])
        change = ((series(x) - truth) ** 2).sum() - ((shrink(x) - truth) ** 2).sum()
        if abs(change) < SAME * off:
            return degree
    return DEGREES[-1]


def filters(sizes: Sequence[int] = SIZES, noises: Sequence[float] = (1.0, 0.1, 0.01)) -> list[Row]:
    """Time of the eigendecomposition over that of the products of a polynomial that is as accurate, nothing else."""
    found = []
    for d in sizes:
        S = aim.Task(d, rho=RHO).S
        for noise in noises:
            R = noisy(S, noise)
            spectrum, product = alternate([lambda R=R: np.linalg.eigh(R), lambda R=R: R @ R], 5)
            x, U = np.linalg.eigh(R)
            degree = needed_degree(x, np.einsum("ij,ik,kj->j", U, S, U, optimize=True), noise)
            count = products_of(degree)
            times = f"degree {degree}, {count} products of {1e3 * product.median:.2g} ms; "
            times += f"eigendecomposition {1e3 * spectrum.median:.2g} ms"
            ratio = spectrum.median / product.median / count
            found.append(Row(f"denoising by products, d = {d}, noise {noise:g}", ratio, "x", "", times))
    return found


def run() -> list[Row]:
    """All rows."""
    return [*amp_iteration(), *filters()]


if __name__ == "__main__":
    for row in run():
        print(f"{row.name}: {row.text} {row.unit} (target {row.goal}; {row.detail})", flush=True)
