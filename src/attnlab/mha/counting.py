r"""How many examples there must be before there can be an answer: equations against unknowns.

=======  ===========================
symbol   meaning
=======  ===========================
m, d, k  heads, token width, tokens
o        output width
n        examples
=======  ===========================
"""

from __future__ import annotations

from attnlab.common.validation import integer


def unknowns(n_heads: int, d: int, d_out: int | None = None) -> int:
    r"""Numbers in a layer, :math:`m(d^2 + d\,o)`.

    Source: derived here.  Status: exact.

    >>> unknowns(n_heads=2, d=8)
    256
    """
    n_heads, d = integer("n_heads", n_heads, low=1), integer("d", d, low=1)
    return n_heads * d * (d + (d if d_out is None else integer("d_out", d_out, low=1)))


def examples_needed(n_heads: int, d: int, k: int, d_out: int | None = None) -> int:
    r"""Fewest examples with as many equations as unknowns.

    An example has k o numbers, so :math:`n k o \ge m(d^2 + d o)`. A row says at most min(o, m(k-1)) numbers about the
    attention matrices, so also :math:`n k \min(o, m(k-1)) \ge m d^2`.

    Source: derived here.  Status: bound (necessary, not sufficient).

    >>> examples_needed(n_heads=2, d=8, k=4)
    8
    """
    k = integer("k", k, low=2)
    total = unknowns(n_heads, d, d_out)
    outputs = d if d_out is None else d_out
    seen = k * min(outputs, n_heads * (k - 1))
    return max(-(-total // (k * outputs)), -(-n_heads * d * d // seen))
