r"""What fits on several GPUs and what it would cost, computed from rates measured on one.

==========  =====================================================================================
symbol      meaning
==========  =====================================================================================
G, m        number of devices, bytes of memory of each
n, T, d     sequences, tokens in each, dimension; n = alpha d^2 for message passing
r           FLOP/s of the products as the algorithm runs them, measured on one device
p           T (T + 1) / 2 indices of a sequence
==========  =====================================================================================

Message passing: 4 n (T - 1) d^2 operations an iteration (softmax: T - 1 vectors of a sequence meet S) split over G
devices, then one eigendecomposition, which every device repeats: it does not get faster with G.

.. math:: t = \frac{4n(T-1)d^2}{G r} + \Big[\frac{nTd}{G r_\text{normals}}\Big]_\text{regenerated} + t_\text{eigh}(d)
.. math:: m = \frac{n}{G}\big([4Td]_\text{resident} + 8(3p+1)\big) + 8 \cdot 12\, d^2 + m_\text{chunk}

Random features: Gram matrix and Cholesky factor split by rows, P features drawn block by block.

.. math:: t = \frac{2n^2P}{G r} + \frac{n^3}{3 G r_{64}}, \qquad m = \frac{12 n^2}{G} + m_\text{chunk}

What devices send each other is left out: per iteration one sum of a d x d matrix.  Status: model; rates measured.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.results import Results
from benchmarks.rows import short

GPUS = (1, 8, 64)
PRODUCTS = ("fp32", "tf32")
ALPHA, TOKENS, ITERATIONS = 0.1, 2, 30
FEATURES = 170_000
DAY = 86_400.0
USABLE, CHUNK_BYTES, DENSE_MATRICES = 0.9, 4 * 2**28, 12
Table = Callable[..., str]


@dataclass(frozen=True)
class Rates:
    """Rates of one device: products of message passing and of a Gram matrix (FLOP/s), normals/s, eigh seconds at d."""

    sweep: dict[str, float]
    gram: dict[str, float]
    cholesky: float
    normals: float
    eigh_seconds: float
    eigh_d: int
    memory: float

    @classmethod
    def measured(cls, gpu: Results | None) -> Rates | None:
        """From the rows of the part ``device`` of a GPU run; None where it has not measured enough."""
        rows = {row.name: row.value for row in gpu.rows.get("device", [])} if gpu else {}
        sizes = [size_in(name) for name in rows if name.startswith("eigh ")]
        kinds = [kind for kind in PRODUCTS if f"AMP products, {kind}" in rows]
        if gpu is None or not sizes or not kinds or not {"Cholesky, fp64", "normal deviates"} <= set(rows):
            return None
        return cls(
            sweep={kind: 1e12 * rows[f"AMP products, {kind}"] for kind in kinds},
            gram={kind: 1e12 * rows[f"matrix product, {kind}"] for kind in kinds},
            cholesky=1e12 * rows["Cholesky, fp64"],
            normals=1e9 * rows["normal deviates"],
            eigh_seconds=rows[f"eigh d={max(sizes)}"],
            eigh_d=max(sizes),
            memory=float(gpu.machine["device memory GiB"]) * 2**30,
        )


def size_in(name: str) -> int:
    """The size at the end of a row's name, ``eigh d=4000``."""
    return int(name.rpartition("=")[2])


@dataclass(frozen=True)
class Cost:
    """A run: its size, bytes on each device, seconds on G devices."""

    gpus: int
    size: int
    memory: float
    seconds: float

    @property
    def gpu_hours(self) -> float:
        """Device time of the whole run."""
        return self.gpus * self.seconds / 3600


def amp_cost(rates: Rates, gpus: int, kind: str, resident: bool, d: int) -> Cost:
    """A run of ``ITERATIONS`` iterations of message passing."""
    n, p = ALPHA * d**2, TOKENS * (TOKENS + 1) // 2
    tokens = 4.0 * TOKENS * d if resident else 0.0
    memory = n / gpus * (tokens + 8 * (3 * p + 1)) + 8.0 * DENSE_MATRICES * d**2 + CHUNK_BYTES
    step = 4 * n * (TOKENS - 1) * d**2 / gpus / rates.sweep[kind]
    step += 0.0 if resident else n * TOKENS * d / gpus / rates.normals
    step += rates.eigh_seconds * (d / rates.eigh_d) ** 3
    return Cost(gpus, d, memory, ITERATIONS * step)


def rfa_cost(rates: Rates, gpus: int, kind: str, n: int) -> Cost:
    """A dual ridge fit: Gram matrix of all features, Cholesky in float64."""
    memory = 12.0 * n**2 / gpus + CHUNK_BYTES
    seconds = 2.0 * n**2 * FEATURES / gpus / rates.gram[kind] + n**3 / 3 / gpus / rates.cholesky
    return Cost(gpus, n, memory, seconds)


def largest(cost: Callable[[int], Cost], rates: Rates, *, seconds: float = math.inf, grain: int = 100) -> Cost:
    """The largest multiple of ``grain`` that fits in memory and time, by bisection (both grow with the size)."""

    def fits(size: int) -> bool:
        run = cost(size)
        return run.memory <= USABLE * rates.memory and run.seconds <= seconds

    low, high = 1, 2
    while fits(high * grain):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle * grain) else (low, middle)
    return cost(low * grain)


def rates_table(gpu: Results | None, table: Table) -> str:
    """The measured rates that everything below is computed from."""
    if Rates.measured(gpu) is None or gpu is None:
        return "*Not measured yet: the tables below need a run of `python -m benchmarks.gpu`.*"
    return table(
        (f"measured on one {gpu.machine['device']}", "value"),
        ([row.name, f"{row.text} {row.unit}"] for row in gpu.rows["device"]),
    )


def amp_table(gpu: Results | None, table: Table) -> str:
    """Largest d with the tokens in memory, and with regenerated tokens, within a day."""
    rates = Rates.measured(gpu)
    if rates is None:
        return "*Not measured yet.*"
    lines = []
    for kind, resident, gpus in itertools.product(rates.sweep, (True, False), GPUS):
        run = largest(functools.partial(amp_cost, rates, gpus, kind, resident), rates, seconds=DAY)
        lines.append(
            [
                str(gpus),
                "resident" if resident else "regenerated",
                kind,
                str(run.size),
                f"{ALPHA * run.size**2:.2g}",
                short(run.seconds / ITERATIONS),
                short(run.seconds / 3600),
                short(run.gpu_hours),
                "memory" if run.seconds < 0.95 * DAY else "the day",
            ]
        )
    headings = ("GPUs", "tokens", "products", "d", "n", "s an iteration", "hours a run", "GPU-hours", "limited by")
    return table(headings, lines)


def rfa_table(gpu: Results | None, table: Table) -> str:
    """Largest n whose Gram matrix and factor fit."""
    rates = Rates.measured(gpu)
    if rates is None:
        return "*Not measured yet.*"
    lines = []
    for kind, gpus in itertools.product(rates.gram, GPUS):
        run = largest(functools.partial(rfa_cost, rates, gpus, kind), rates)
        held = f"{run.memory / 2**30:.0f}"
        lines.append([str(gpus), kind, str(run.size), held, short(run.seconds), short(run.gpu_hours)])
    return table(("GPUs", "products", "n", "GiB on each", "seconds", "GPU-hours"), lines)
