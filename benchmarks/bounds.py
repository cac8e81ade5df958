"""What bounds an AMP iteration: matrix products at the rate of their shapes, the spectrum, and work on single rows.

A single exponent does not describe these times: the rate of a product still grows with d, and the spectrum, d^3, is a
third of an iteration at d = 100. The model adds up parts that are measured on their own; one constant is fitted, the
time of the work on the n d entries of the tokens that lies between the products.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from attnlab.aim.messages.blas import BlasMessages
from benchmarks.aim import SIZES, fitted_times, messages, spectral_of
from benchmarks.harness import Row, alternate, middle

PARTS = ("products", "spectrum", "rows")


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
    spectrum = [t.median for t in alternate([spectral_of(S) for _, S in held], repeats)]
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
    return found


def run() -> list[Row]:
    """All rows."""
    return amp_iteration()


if __name__ == "__main__":
    for row in run():
        print(f"{row.name}: {row.text} {row.unit} (target {row.goal}; {row.detail})", flush=True)
