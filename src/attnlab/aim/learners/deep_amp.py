r"""Message passing for several attention layers.

The iteration of :mod:`attnlab.aim.learners.message_passing` with one set of messages for each layer: the output
function couples them (:mod:`attnlab.aim.deep.output`), the priors do not, q_hat being taken diagonal.

Source: derived here from arXiv:2506.01582.  Status: exact cross term only for the centred prior.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.utils.validation import check_is_fitted

from attnlab.aim.channels import Softmax
from attnlab.aim.deep.channel import deep_outputs
from attnlab.aim.deep.output import DeepOutput
from attnlab.aim.indices import Layout, indices
from attnlab.aim.learners.message_passing import MessagePassing
from attnlab.aim.messages.probes import Probes
from attnlab.aim.messages.products import adjoint, forward
from attnlab.aim.spectrum import check_rho, tied
from attnlab.common.arrays import ArrayLike
from attnlab.common.precision import float64
from attnlab.common.sequences import SequenceRegressor
from attnlab.common.tokens import check_targets, check_tokens
from attnlab.common.validation import finite_array, integer, nonnegative, positive, real

CHUNK = 2**14  # sequences at a time: the integral of one holds 289 nodes with some 30 numbers each, 1 GB in all


class DeepAMP(MessagePassing, SequenceRegressor):
    """Estimates of the attention matrices of all layers from the output of the last.

    Two layers and two tokens are integrated by quadrature; up to three layers and four tokens by importance sampling,
    some hundred times slower for each sequence.

    Parameters
    ----------
    rho, layers, skip, beta : as in :class:`attnlab.aim.DeepTask`.
    damping, max_iter, tol : as in :class:`attnlab.aim.AMP`.

    Attributes
    ----------
    S_ : the estimates, (layers, d, d).
    predicted_mse_ : the errors the algorithm expects of itself, (layers,).
    converged_, n_iter_, trace_ : as in :class:`attnlab.aim.AMP`; ``trace_`` entries have one number for each layer.
    """

    needs = ("rho", "layers", "skip", "beta")

    def __init__(
        self,
        rho: float = 0.5,
        *,
        layers: int = 2,
        skip: float = 1.0,
        beta: float = 1.0,
        damping: float = 0.4,
        max_iter: int = 100,
        tol: float = 1e-6,
    ) -> None:
        self.rho = rho
        self.layers = layers
        self.skip = skip
        self.beta = beta
        self.damping = damping
        self.max_iter = max_iter
        self.tol = tol

    @property
    def prior(self) -> ModuleType:
        """The spectrum of the prior."""
        return tied

    @property
    def layout_(self) -> Layout:
        """Tied self-attention."""
        return Layout(self.tokens_, self.tokens_)

    @float64
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        truth: np.ndarray | None = None,
        start: ArrayLike | None = None,
        start_error: float = 1.0,
    ) -> DeepAMP:
        """Run to convergence; ``truth`` (layers, d, d), ``start`` and ``start_error`` as in
        :meth:`attnlab.aim.AMP.fit`.
        """
        self._check_parameters()
        X = check_tokens(X)
        n, self.tokens_, d = X.shape
        layers = integer("layers", self.layers, low=1)
        y = check_targets(y, n, shape=(self.tokens_, self.tokens_))
        output = DeepOutput(layers, self.tokens_, float(self.skip), float(self.beta))
        shape = (layers, d, d)
        S = self._prior_means(layers, d) if start is None else finite_array("start", start, shape=shape)
        truth = None if truth is None else finite_array("truth", truth, shape=shape)
        error = np.full(layers, positive("start_error", start_error))
        self._iterate(DeepMessages(X, y, output).sweep, np.asarray, n / d**2, truth, S, error)
        return self

    def _check_parameters(self) -> None:
        check_rho(self.rho)
        real("damping", self.damping, low=0, high=1, open_high=True)
        integer("max_iter", self.max_iter, low=1)
        for name in ("beta", "tol"):
            positive(name, getattr(self, name))
        nonnegative("skip", self.skip)

    def _strengths(self, V: np.ndarray, measured: np.ndarray) -> np.ndarray:
        """mean |g|^2; one layer has a formula."""
        # k/V depends neither on beta nor on the total variance.
        return Softmax().strength(V, 1.0, self.layout_).value if len(V) == 1 else measured

    def _damping(self, alpha: float, d: int) -> float:
        return float(self.damping)

    def predict(self, X: Any) -> np.ndarray:
        """Plug-in outputs (n, T, T) for fresh sequences."""
        check_is_fitted(self, "S_")
        X = np.asarray(check_tokens(X, n_tokens=self.tokens_, d=self.S_.shape[1]), dtype=np.float64)
        return deep_outputs(np.stack([indices(X, S) for S in self.S_]), self.skip, self.beta)


class DeepMessages:
    """omega and g of every layer and sequence, (layers, n, p), chunk by chunk of sequences."""

    def __init__(self, X: np.ndarray, y: np.ndarray, output: DeepOutput) -> None:
        self.X, self.output, self.seen = X, output, output.seen(y)
        self.omega, self.g = np.zeros((2, output.layers, len(X), output.layout.p))

    def sweep(self, S: list[Any], onsager: np.ndarray, V: np.ndarray, damping: float) -> tuple[Any, np.ndarray]:
        """Update all messages; A^T g and the mean of |g|^2, layer by layer."""
        total, squares = np.zeros((len(S), *S[0].shape)), np.zeros(len(S))
        for start in range(0, len(self.X), CHUNK):
            part = slice(start, start + CHUNK)
            # The tokens set the precision of the products; messages and sums stay float64.
            data = (np.asarray(self.X[part], np.float32), self.seen[part], self.omega[:, part], self.g[:, part])
            found = [np.asarray(v) for v in _sweep(*data, np.stack(S), onsager, V, damping, self.output)]
            self.omega[:, part], self.g[:, part] = found[:2]
            total, squares = total + found[2], squares + found[3]
        return total, squares / len(self.X)


@functools.partial(jax.jit, static_argnames=("output",))
def _sweep(
    X: jax.Array, seen: Any, omega: Any, g: Any, S: Any, onsager: Any, V: Any, damping: Any, output: DeepOutput
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """New messages of all layers, A^T g_l, and the sums of |g_l|^2, for one chunk of sequences."""
    probes = Probes(output.layout, differences=True)  # every layer sees its indices up to one constant
    E = probes.view(X)
    fresh = jnp.stack([forward(E, S[i], probes) - onsager[i] * g[i] for i in range(output.layers)])
    omega = (1 - damping) * fresh + damping * omega
    g, squares = output.g(seen, omega, V)
    return omega, g, jnp.stack([adjoint(E, one, probes) for one in g]), squares.sum(axis=1)
