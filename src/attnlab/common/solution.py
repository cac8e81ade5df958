"""What an iteration returns: failure is data, not an exception in the middle of a sweep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Solution(Generic[T]):
    """The result of an iterative computation.

    Attributes
    ----------
    value : what was asked for.
    converged : whether the stopping rule was met, everywhere when the computation broadcasts.
    n_iter : iterations used.
    residual : the size of the last change, in the units of the stopping rule.
    """

    value: T
    converged: bool
    n_iter: int
    residual: float
