"""An attention activation of your own for slr: one function g of the score, and learner, theory and sweeps follow."""

from dataclasses import dataclass
from typing import ClassVar

from attnlab import lab, slr


@lab.add
@dataclass(frozen=True)
class Quadratic(slr.Elementwise):
    """Weights 1 + chi + curvature chi^2: the first terms of a softmax that is not normalised."""

    name: ClassVar[str] = "quadratic"
    curvature: float = 0.25

    def g(self, chi, xp):
        """The weight of a token with score chi; ``xp`` has NumPy's or JAX's functions."""
        return 1 + chi + self.curvature * chi**2
