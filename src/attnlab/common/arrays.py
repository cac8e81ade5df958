"""The types of array arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

# numpy.typing.ArrayLike cannot be checked at run time; this can.
ArrayLike: TypeAlias = int | float | np.generic | np.ndarray | Sequence[Any]
