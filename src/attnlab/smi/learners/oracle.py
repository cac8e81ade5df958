"""The predictor that knows the planted directions."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.common.stopping import ended
from attnlab.common.validation import finite_array
from attnlab.smi.learners.predictor import DirectionsPredictor
from attnlab.smi.link import Link


class OraclePredictor(DirectionsPredictor):
    """The mean output at given directions; its error is the noise of the output.

    mean(X W^T / sqrt d) with the mean of the link.

    Parameters
    ----------
    link : as in :class:`attnlab.smi.Task`.
    W : the directions (r, d), usually ``task.W``.

    Attributes
    ----------
    W_ : the directions.
    """

    needs = ("link", "W")

    def __init__(self, link: str | Link = "attention", W: Any = None) -> None:
        self.link = link
        self.W = W

    def fit(self, X: Any, y: Any) -> OraclePredictor:
        """Nothing is learned; the data must have the shape of the link."""
        X, _ = self._check_data(X, y, min_samples=1)
        if self.W is None:
            raise ValueError("W must be the directions (r, d) that the oracle knows, got None")
        self.W_ = finite_array("W", self.W, shape=(self.law.rank, X.shape[2])).astype(np.float64)
        ended(self, converged=True, reason="nothing to learn")
        return self
