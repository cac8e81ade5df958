r"""Counting: equations against unknowns, different rows of a cube, queries, operations.

The functions without a task are the formulas themselves, for learners; the public ones speak of a law.
"""

from __future__ import annotations

from math import ceil, comb

from attnlab.common.law import from_law
from attnlab.common.prediction import Prediction
from attnlab.common.validation import integer, one_of
from attnlab.mha.task import Task


def layer_numbers(m: int, d: int, o: int) -> int:
    r"""Numbers in a layer, :math:`m(d^2 + d\,o)`."""
    return m * d * (d + o)


def fewest_examples(m: int, d: int, k: int, o: int) -> int:
    """The count behind :func:`examples_needed`."""
    seen = k * min(o, m * (k - 1))
    return max(ceil(layer_numbers(m, d, o) / (k * o)), ceil(m * d * d / seen))


@from_law(Task, "n_heads", "d", "d_out", k=2)
def unknowns(task: Task) -> Prediction:
    r"""Numbers in a layer, :math:`m(d^2 + d\,o)`.

    Source: derived here.  Status: exact.

    >>> unknowns(n_heads=2, d=8)
    256 (exact)
    """
    return Prediction(layer_numbers(task.n_heads, task.d, task.outputs))


@from_law(Task, "n_heads", "d", "k", "d_out")
def examples_needed(task: Task) -> Prediction:
    r"""Fewest examples with as many equations as unknowns.

    An example has k o numbers, so :math:`n k o \ge m(d^2 + d o)`. A row says at most min(o, m(k-1)) numbers about the
    attention matrices, so also :math:`n k \min(o, m(k-1)) \ge m d^2`.

    Source: derived here.  Status: bound (necessary, not sufficient).

    >>> examples_needed(n_heads=2, d=8, k=4)
    8 (bound)
    """
    k = integer("k", task.k, low=2)
    return Prediction(fewest_examples(task.n_heads, task.d, k, task.outputs), status="bound")


@from_law(Task, "k", "d", n_heads=1)
def distinct_rows(task: Task) -> Prediction:
    """How many different rows the cube has: a query among a multiset of k keys that contains it.

    Source: derived here.  Status: exact.

    >>> distinct_rows(k=2, d=1)
    4 (exact)
    """
    corners = int(2**task.d)
    return Prediction(corners * comb(corners + task.k - 2, task.k - 1))


def query_count(
    d: int,
    method: str = "pairs",
    rank: int | None = None,
    n_heads: int = 1,
    bias: bool = False,
    d_out: int | None = None,
    extra: int = 8,
    counted: bool = False,
) -> Prediction:
    """Value queries that recover a layer, by method.

    One head: d + d^2 (pairs), 2 d (wide), d + 6 r d (low rank). Several heads: linear part, first direction, points,
    then for each of d directions the points and the labels (reference) or its own separation (separate); ``rank`` adds
    the columns. ``counted`` is for a number of heads that the learner has to find (n_heads=None). Directions that are
    asked for again are not in the count.

    Source: derived here; one head after arXiv:2601.16873.  Status: exact.

    >>> query_count(30), query_count(30, "low_rank", rank=2), query_count(64, "reference", n_heads=12, counted=True)
    (930 (exact), 390 (exact), 7064 (exact))
    """
    d, m, extra = integer("d", d, low=1), integer("n_heads", n_heads, low=1), integer("extra", extra, low=1)
    r = d if rank is None else integer("rank", rank, low=1)
    counts = {"pairs": d + d * d, "wide": 2 * d, "low_rank": d + 6 * r * d}
    one_of("method", method, (*counts, "reference", "separate"))
    if method in counts:
        return Prediction(counts[method])
    # 16, 8, 40 and 30 are the learner's: UNKNOWN_HEADS, checks of the linear part, margins of points.
    heads = 16 if counted else m
    points = max(min(r, d) + bias, m) + extra
    o = d if d_out is None else integer("d_out", d_out, low=1)
    labels = m + extra if method == "reference" else 3 * (30 + m * (m + 3) // 2 + m) + ceil(1.5 * m * m / o) + 3
    columns = d * (r + extra) if r < d else 0
    return Prediction(d + bias + 8 + 3 * (40 + heads * (heads + 3)) + points + d * (points + labels) + columns)


@from_law(Task, "n_heads", "d", "k")
def step_flops(task: Task, rows: int) -> Prediction:
    r"""Floating-point operations of one Levenberg-Marquardt step on so many rows (output width d).

    The parts are in ``detail``: ``assembly`` is the two products over rows, ``row_work`` the work on single rows before
    them, ``projection`` the elimination of W, ``solve`` the Cholesky factor; ``direct`` is what a symmetric product of
    the Jacobian with itself would cost instead of the assembly. ``bytes`` are those of the work on single rows:
    weighted keys and values, C, M and its transpose, M M^T, the pairs of all these, each written once and read once.

    Source: derived here.  Status: exact to leading order.
    """
    m, d, k, r = task.n_heads, task.d, integer("k", task.k, low=2), integer("rows", rows, low=1)
    pairs, all_pairs, size = d * (d + 1) // 2, m * d * (m * d + 1) // 2, m * d * d
    parts = {
        "assembly": 2.0 * r * pairs * (all_pairs + m * size),
        "row_work": 2.0 * r * m * d * d * (3 * k + m * d),
        "projection": float(size) ** 3,
        "solve": size**3 / 3,
    }
    numbers = 3 * k * m * d + 4 * size + (m * d) ** 2 + all_pairs + (2 + m) * pairs
    more = {"direct": r * d * float(size) ** 2, "bytes": 16.0 * r * numbers}
    return Prediction(sum(parts.values()), detail={**parts, **more})


@from_law(Task, "n_heads", "d", "k")
def product_flops(task: Task, rank: int, rows: int) -> Prediction:
    r"""Floating-point operations of one product :math:`J^\top J v` in the factors of heads of low rank.

    .. math:: 2R\,[m(4rd + 4kr + 2ko) + 2mdo]

    for R rows; a step adds :math:`2R(md)^2 + (md)^3/3` for the regression and an orthonormal basis of the mean keys, in
    ``detail`` as ``regression``.

    Source: derived here.  Status: exact to leading order.
    """
    m, d, k, o = task.n_heads, task.d, integer("k", task.k, low=2), task.outputs
    r, R = integer("rank", rank, low=1, high=d), integer("rows", rows, low=1)
    product = 2.0 * R * m * (4 * r * d + 4 * k * r + 2 * k * o + 2 * d * o)
    return Prediction(product, detail={"regression": 2 * R * float(m * d) ** 2 + float(m * d) ** 3 / 3})


def net_size(n_heads: int, net_points: int) -> Prediction:
    """Tuples of heads that the net of phase 6 compares, m out of its points.

    Source: definition.  Status: exact.

    >>> net_size(2, 100)
    4950 (exact)
    """
    return Prediction(comb(integer("net_points", net_points, low=1), integer("n_heads", n_heads, low=1)))
