"""What a theory function returns: a number with its accuracy."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

Status = Literal["exact", "asymptotic", "bound", "heuristic"]


# eq=False: the comparison of the mixin stays, which compares values entry by entry
@dataclass(frozen=True, eq=False)
class Prediction(NDArrayOperatorsMixin):
    """A predicted quantity. It behaves as its ``value`` in arithmetic, comparison, indexing, formatting and plotting.

    Parameters
    ----------
    value : the quantity, a number or an array.
    error : its numerical uncertainty, one standard error or a bound; 0 where it is exact to rounding.
    status : what the value is: *exact*, *asymptotic*, a *bound* or *heuristic*.
    converged : whether every iteration behind it met its stopping rule.
    detail : further results by name, such as a trajectory or a residual.

    >>> p = Prediction(0.25, error=0.01, status="asymptotic")
    >>> p, float(2 * p), f"{p:.3f}", bool(p < 1)
    (0.25 ± 0.01 (asymptotic), 0.5, '0.250', True)
    """

    value: Any
    error: Any = 0.0
    status: Status = "exact"
    converged: Any = True
    detail: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.value, dtype=dtype, copy=copy)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        # plain numbers come out: error and status hold for the value, not for what is computed from it
        plain = [x.value if isinstance(x, Prediction) else x for x in inputs]
        return getattr(ufunc, method)(*plain, **options)

    def __float__(self) -> float:
        return float(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __round__(self, digits: int | None = None) -> Any:
        return round(float(self.value), digits)

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.value)

    def __getitem__(self, index: Any) -> Any:
        return self.value[index]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the value."""
        return np.shape(self.value)

    def __format__(self, spec: str) -> str:
        return format(self.value, spec) if spec else str(self)

    def __repr__(self) -> str:
        bar = f" ± {self.error:.2g}" if np.ndim(self.error) == 0 and self.error else ""
        number = f"{self.value:.6g}" if np.ndim(self.value) == 0 else str(np.asarray(self.value))
        return f"{number}{bar} ({self.status}{'' if np.all(self.converged) else ', not converged'})"

    def _repr_html_(self) -> str:
        """A row for each value, in a notebook."""
        # one error and one flag may stand for a whole array of values
        columns = np.broadcast_arrays(self.value, self.error, self.converged)
        rows = "".join(
            f"<tr><td>{value:.6g}</td><td>{error:.2g}</td><td>{'yes' if settled else 'no'}</td></tr>"
            for value, error, settled in zip(*(column.ravel()[:20] for column in columns), strict=True)
        )
        head = "<tr><th>value</th><th>error</th><th>converged</th></tr>"
        return f"<table><caption>{html.escape(self.status)}</caption>{head}{rows}</table>"
