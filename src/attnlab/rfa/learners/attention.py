"""Random-feature attention: frozen random query-key matrices, trained value vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from attnlab.common.validation import integer, one_of
from attnlab.rfa.activations import as_activation
from attnlab.rfa.bias import NAMES, mean_matrix, moment_bias
from attnlab.rfa.features import AttentionFeatures, each_token_as_query
from attnlab.rfa.learners.features import RidgeOnFeatures


class RandomFeatureAttention(RidgeOnFeatures):
    r"""Ridge regression on the values of frozen random attention heads.

    .. math:: f(x) = \sum_{m=1}^M \tfrac1N \sum_{i=1}^N \sigma(\tilde x_0^T W_m \tilde x_i)\,
              \langle v_m, \tilde x_i\rangle,
              \qquad W_m \sim \mathcal N(W_0, \tau^2), \quad \tilde x = [x; 1]

    (arXiv:2307.11353). The values minimise :math:`\tfrac1n\sum_j \ell(f(x_j), y_j) + \lambda\|\theta\|^2` with
    :math:`\theta_m = \sqrt M v_m`; in this scaling the kernel of the features tends to :func:`attnlab.rfa.kernel` as
    the number of heads grows.

    Parameters
    ----------
    n_heads : number of heads M.
    bias : mean of W (BRFA): None, ``"identity"``, a matrix (d, d), or ``"moment"`` (read off the data).
    bias_scale : scale of the bias.
    ridge : penalty lambda; a sequence of candidates, of which leave-one-out picks the best; or a :class:`NormBall`,
        which bounds |theta| in its place.
    activation : ``relu``, ``exp``, ``identity``, ``square``, ``erf`` (averaged over the keys), ``softmax``,
        ``relu_sum`` (which sum to one), or an :class:`~attnlab.rfa.activations.base.Activation`, which owns the spread
        of W.
    loss : ``squared``, ``logistic`` (y = ±1, ``predict`` gives the margin) or ``huber``.
    solver : ``dual`` (n x n system), ``streamed`` (same, features computed twice, memory O(n^2) for any number of
        heads), ``primal`` (P x P), ``cg`` (Nyström-preconditioned), ``auto``.
    compute : device, dtype (float32 by default), precision of products, devices and memory of features and Gram
        matrix; the solve is in float64.
    n_tokens : tokens of the flat form ``X (n, n_tokens * d)``.
    random_state : seed of the heads; the first M heads are the same for any larger n_heads.

    Attributes
    ----------
    coef_ : theta in feature order (P, k);  values_ : the same by head, (M, d+1, k).
    bias_ : S, the mean of W before scaling, or None;  seed_ : seed of the heads.
    ridge_ : the ridge that was used, on a ball the multiplier;  path_ : the candidates' errors, or None.
    converged_, n_iter_, stop_reason_ : how the solver ended.

    Examples
    --------
    >>> from attnlab import rfa
    >>> X, y = rfa.Task(target="key_power", p=1, d=4, n_keys=3).sample(200)
    >>> model = rfa.RandomFeatureAttention(n_heads=50, random_state=0).fit(X[:150], y[:150])
    >>> model.score(X[150:], y[150:]) > 0.95
    True
    """

    def __init__(
        self,
        n_heads: Any = 1000,
        *,
        bias: Any = None,
        bias_scale: Any = 1.0,
        ridge: Any = 1e-6,
        activation: Any = "relu",
        loss: Any = "squared",
        solver: Any = "auto",
        compute: Any = None,
        n_tokens: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_heads = n_heads
        self.bias = bias
        self.bias_scale = bias_scale
        self.ridge = ridge
        self.activation = activation
        self.loss = loss
        self.solver = solver
        self.compute = compute
        self.n_tokens = n_tokens
        self.random_state = random_state

    def _is_estimated(self) -> bool:
        return isinstance(self.bias, str) and one_of("bias", self.bias, NAMES) == "moment"

    def _depends_on_sample(self) -> bool:
        return self._is_estimated()

    def _prepare(self, X: np.ndarray, Y: np.ndarray) -> None:
        """The bias matrix S, checked against the width of the tokens or estimated."""
        integer("n_heads", self.n_heads, low=1)
        as_activation(self.activation)
        d = X.shape[2]
        if self._is_estimated():
            # All outputs share the heads, so one bias is read off their mean.
            self.bias_: np.ndarray | None = moment_bias(self._inputs(X).astype(np.float64), Y.mean(axis=1))
        else:
            given = self.bias if self.bias is None or isinstance(self.bias, str) else np.asarray(self.bias)
            self.bias_ = None if given is None else mean_matrix(given, d)[:d, :d]
        # For its check of the scale, before the features are computed.
        mean_matrix(self.bias_, d, self.bias_scale)

    def _feature_map(self) -> AttentionFeatures:
        W0 = mean_matrix(self.bias_, self.d_, self.bias_scale)
        return AttentionFeatures(self.n_heads, self.d_, self.seed_, W0, as_activation(self.activation))

    @property
    def values_(self) -> np.ndarray:
        """theta by head, ``(M, d + 1, k)``; the model's v_m are these divided by sqrt(M)."""
        return self._feature_map().by_head(self.coef_)


class RandomFeatureSelfAttention(RandomFeatureAttention):
    """Random-feature attention with every token as the query in turn, which attends to all tokens.

    Parameters as :class:`RandomFeatureAttention`. y is (n, tokens) or (n, tokens, k), and predictions move with the
    tokens under permutations; a sequence of one token may have y (n,).
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # A second axis of y is that of the tokens, not one of several outputs.
        tags.target_tags.multi_output = False
        return tags

    def _inputs(self, X: np.ndarray) -> np.ndarray:
        return each_token_as_query(X)

    def _targets(self, y: Any, n: int) -> np.ndarray:
        """y as (n * tokens, k)."""
        y = self._numbers(y)
        alone = self.tokens_ == 1 and y.ndim == 1 and len(y) == n
        if not alone and (y.ndim not in (2, 3) or y.shape[:2] != (n, self.tokens_)):
            shape = f"({n}, {self.tokens_})"
            raise ValueError(f"self-attention needs y of shape {shape} or ({n}, {self.tokens_}, k), got {y.shape}")
        self.output_shape_ = list(y.shape[1:])
        return np.asarray(y.reshape(n * self.tokens_, -1), dtype=np.float64)

    def _shared_path(self, X: Any, y: Any, X_test: Any, sizes: Sequence[int]) -> None:
        """An example is several rows: the fits are made one by one."""
        return

    def _shaped(self, f: np.ndarray) -> np.ndarray:
        return f.reshape(-1, *self.output_shape_)
