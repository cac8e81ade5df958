"""What the learners share: checking data, predicting with estimated directions, scoring."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.utils.validation import check_is_fitted

from attnlab.common.advice import advise
from attnlab.common.precision import float64
from attnlab.common.sequences import SequenceRegressor
from attnlab.common.tokens import check_targets, check_tokens
from attnlab.common.validation import one_of
from attnlab.smi.check import checked
from attnlab.smi.link import Link
from attnlab.smi.links.attention import check_rows, probabilities
from attnlab.smi.outputs import mean_function, spread_mean

PREDICTIONS = ("plug-in", "bayes")


class DirectionsPredictor(SequenceRegressor):
    """Fitted directions ``W_`` make predictions: mean(X W_^T / sqrt d), or its average over the remaining error V_."""

    link: str | Link
    needs: tuple[str, ...] = ("link",)

    @property
    def law(self) -> Link:
        """The link as an object, checked."""
        return checked(self.link)

    def _check_data(self, X: Any, y: Any, min_samples: int = 2) -> tuple[np.ndarray, np.ndarray]:
        law = self.law
        X = check_tokens(X, n_tokens=law.tokens, min_samples=min_samples)
        if X.shape[2] < law.rank:
            raise ValueError(f"X must have tokens of width d >= rank {law.rank} of the link, got shape {X.shape}")
        # The mean square of N standard normals spreads by sqrt(2/N).
        if abs((size := float(np.mean(X**2))) - 1) > 0.5 + 5 * np.sqrt(2 / X.size):
            advise(f"X has the mean square {size:.3g}, entries of variance 1 are assumed: scale them", stacklevel=4)
        y = check_targets(y, len(X), shape=output_shape(law))
        return X, law.read_outputs(y) if law.read_outputs is not None else y

    def _outputs(self, y: np.ndarray) -> np.ndarray:
        """y as a prediction is: softmax rows where their logarithms are given."""
        # The function tells attention links from others: only their outputs may come as logarithms.
        return probabilities(y) if self.law.read_outputs is check_rows else y

    def predict(self, X: Any) -> np.ndarray:
        """Outputs of fresh sequences (n, T, d)."""
        check_is_fitted(self, "W_")
        X = check_tokens(X, n_tokens=self.law.tokens, d=self.W_.shape[1])
        z = X @ self.W_.T / np.sqrt(self.W_.shape[1])
        if one_of("prediction", getattr(self, "prediction", "plug-in"), PREDICTIONS) == "plug-in":
            return _plug_in(self.law, z)
        return spread_mean(self.law, z, self.V_)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R^2 over all entries; y as ``fit`` takes it."""
        return super().score(X, self._outputs(np.asarray(y)), sample_weight)


@functools.lru_cache(maxsize=256)
@float64
def output_shape(link: Link) -> tuple[int, ...]:
    """Shape of the output of one sequence."""
    z, e = jnp.zeros((link.tokens, link.rank)), jnp.zeros(link.noise)
    # Traced, not computed.
    return tuple(jax.eval_shape(link.sample, z, e).shape)


@float64
def _plug_in(link: Link, z: np.ndarray) -> np.ndarray:
    return np.asarray(jax.vmap(mean_function(link))(jnp.asarray(z)))
