"""Examples kept from the fit: some to choose the number of heads, some to certify the result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from attnlab.common.validation import positive, real


class Split(NamedTuple):
    """Example numbers for fitting, for choosing, and for the certificate."""

    train: np.ndarray
    validation: np.ndarray
    certificate: np.ndarray


@dataclass(frozen=True)
class Holdout:
    """Examples that are kept from the fit, and what the certificate states with them.

    Parameters
    ----------
    validation, certificate : shares of the examples; zero for none.
    delta : probability that a statement of the certificate is wrong.
    label_bound : a bound on the absolute labels that you vouch for. With it (and sign tokens) the certificate bounds
        the mean squared error; without it the mean of the squared error cut at the mean square of the fitted labels.
    """

    validation: float = 0.1
    certificate: float = 0.1
    delta: float = 0.05
    label_bound: float | None = None

    def __post_init__(self) -> None:
        real("validation", self.validation, low=0, high=0.9)
        real("certificate", self.certificate, low=0, high=0.9)
        if self.validation + self.certificate > 0.9:
            total = self.validation + self.certificate
            raise ValueError(f"validation + certificate must be at most 0.9, got {total:g}")
        real("delta", self.delta, low=0, high=1, open_low=True, open_high=True)
        if self.label_bound is not None:
            positive("label_bound", self.label_bound)

    @property
    def fitted(self) -> float:
        """Share of the examples that are fitted."""
        return 1 - self.validation - self.certificate

    def split(self, n: int, rng: np.random.Generator) -> Split:
        """A random split of n examples."""
        order = rng.permutation(n)
        v, c = round(self.validation * n), round(self.certificate * n)
        return Split(order[v + c :], order[:v], order[v : v + c])


KEPT = Holdout()
NOTHING = Holdout(0.0, 0.0)
