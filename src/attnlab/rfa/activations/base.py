r"""What an activation is: how the scores of a head become attention weights, and the kernel that follows.

==========  ==================================================================================
symbol      meaning
==========  ==================================================================================
S           scores x_0^T W_m x_i, shape (n, N, heads)
A           attention weights, same shape
m, s, rho   means, deviations and correlation of two Gaussian scores z and z'
tau         standard deviation of the entries of W, which sets the scale of the scores
==========  ==================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from attnlab.common.validation import positive


@dataclass(frozen=True)
class Activation:
    """A subclass writes ``weights`` (NumPy and JAX through ``xp``) and, where it is known, ``pairs``.

    Parameters
    ----------
    tau : standard deviation of the entries of W. At 1/2 scores of unit tokens have variance one.
    """

    tau: float = 0.5
    name: ClassVar[str] = ""
    # Whether the weights are averaged over the keys (1/N); otherwise they sum to one by themselves.
    averaged: ClassVar[bool] = True
    # Whether ``pairs`` integrates numerically: then arithmetic, not memory, limits the speed of the kernel.
    quadrature: ClassVar[bool] = False

    def __post_init__(self) -> None:
        positive("tau", self.tau)

    def weights(self, xp: Any, S: Any) -> Any:
        """Attention weights over the keys (axis 1), without the 1/N of an average, which the caller has in a scale."""
        raise NotImplementedError

    def weights_in_place(self, S: np.ndarray, zeros: np.ndarray) -> np.ndarray:
        """The same for NumPy, over S where that is faster; ``zeros`` has the shape of S."""
        return np.asarray(self.weights(np, S))

    def pairs(self, m: Any, s: Any, m2: Any, s2: Any, rho: Any, nodes: int) -> Any:
        """E[sigma(z) sigma(z')] for z ~ N(m, s^2), z' ~ N(m2, s2^2) of correlation rho; JAX arrays."""
        raise ValueError(f"activation {self!r} has no closed-form kernel")

    def centred_pairs(self, rho: Any) -> Any:
        """The same for m = m2 = 0 and s = s2 = 1, if sigma is homogeneous of degree one; None if it is not."""
        return None

    @property
    def homogeneous(self) -> bool:
        """Whether ``centred_pairs`` is written."""
        return type(self).centred_pairs is not Activation.centred_pairs

    @property
    def has_kernel(self) -> bool:
        """Whether ``pairs`` is written."""
        return type(self).pairs is not Activation.pairs
