"""A measured fact, the target it is held against, and the table that keeps many of them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

RATE = r"\bof (the )?(measured )?(sgemm|dgemm|fp32|fp64|tf32|bf16|matrix rate|copy|bandwidth)"
NUMBER = r"([-+]?\d[\d ]*\.?\d*(?:e[-+]?\d+)?)"


@dataclass(frozen=True)
class Row:
    """``value`` in ``unit``, the target it is held against, and what was run.

    Units with a meaning: ``x`` is a ratio to an alternative (larger is better), ``exponent`` the growth of a time,
    ``of ...`` a share of a rate measured in the same run (``of sgemm``, ``of dgemm``, ``of fp32``).
    """

    name: str
    value: float
    unit: str
    target: str
    detail: str
    spread: float | None = None  # half the interquartile range over repeats, in the unit of the value
    compile: float | None = None  # seconds of the first call beyond a later one
    memory: float | None = None  # peak bytes, where they matter
    theory: float | None = None  # the value that theory predicts: exponents
    note: str = ""  # why a target is missed: what bounds the value

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None when there is none, or when it is not a number."""
        return meets(float(self.value), self.target)  # not a NumPy number: the answer is stored as JSON

    @property
    def text(self) -> str:
        """Value and spread with the digits that they support."""
        return plus_minus(self.value, self.spread or 0.0)

    @property
    def goal(self) -> str:
        """The target, or for a growth what theory predicts."""
        if self.target.strip() in ("", "-") and self.theory is not None:
            return f"theory {self.theory:.3g}"
        return self.target

    @property
    def kind(self) -> str:
        """What the value is: ratio, share (of a hardware rate), growth, or size (seconds, bytes, errors)."""
        if self.unit == "x":
            return "ratio"
        if self.unit == "exponent":
            return "growth"
        rate = re.search(
            r"\bof (the )?(measured )?(sgemm|dgemm|fp32|fp64|tf32|bf16|matrix rate|copy|bandwidth)", self.unit
        )
        return "share" if rate or "share of" in self.name else "size"


def meets(value: float, target: str) -> bool | None:
    """Decide a target written as ``>= 3``, ``< 10 s``, ``4 ± 0.3`` or ``within 1 %``; None if it is none of these.

    >>> meets(3.2, ">= 3"), meets(12.0, "< 10 s"), meets(2.9, "4 ± 0.3"), meets(-0.004, "within 1 %"), meets(1.0, "-")
    (True, False, False, True, None)
    """
    if bound := re.fullmatch(rf"(>=|<=|>|<)\s*{NUMBER}\s*[^\d\s,]*", target.strip()):
        limit = _number(bound[2])
        return {">=": value >= limit, "<=": value <= limit, ">": value > limit, "<": value < limit}[bound[1]]
    if around := re.fullmatch(rf"{NUMBER}\s*±\s*{NUMBER}", target.strip()):
        return abs(value - _number(around[1])) <= _number(around[2])
    if within := re.fullmatch(rf"within {NUMBER}\s*%", target.strip()):
        return abs(value) <= _number(within[1]) / 100
    return None


def short(value: float, digits: int = 3) -> str:
    """A number for a table: thousands are written out.

    >>> short(2614.9), short(0.0123456), short(41.2, 1), short(1.5e7)
    ('2615', '0.0123', '41', '1.5e+07')
    """
    return f"{value:.0f}" if 10**digits <= abs(value) < 1e5 else f"{value:.{digits}g}"


def plus_minus(value: float, spread: float) -> str:
    """A value to the decimals that its spread supports, four digits at most.

    >>> plus_minus(312.9, 24.1), plus_minus(7.07e-06, 0.01), plus_minus(1.0, 0.08), plus_minus(2615.3, 0.2)
    ('313 ± 24', '0.00 ± 0.01', '1.00 ± 0.08', '2615 ± 0.2')
    >>> plus_minus(0.5, 0.0)
    '0.5'
    """
    if not spread > 0 or not math.isfinite(value):
        return short(value)
    decimals = -math.floor(math.log10(spread))
    if value:
        decimals = min(decimals, 3 - math.floor(math.log10(abs(value))))
    rounded = f"{value:.{max(decimals, 0)}f}" if decimals <= 6 else short(value)
    return f"{rounded} ± {short(spread, 1)}"


def limit(target: str) -> float | None:
    """The number of a one-sided target, for the picture."""
    bound = re.match(rf"(?:>=|<=|>|<)\s*{NUMBER}", target.strip())
    return _number(bound[1]) if bound else None


def _number(text: str) -> float:
    return float(text.replace(" ", ""))
