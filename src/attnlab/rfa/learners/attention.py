"""Random-feature attention: frozen random query-key matrices, trained value vectors."""

from __future__ import annotations

from types import MethodType
from typing import Any

import numpy as np

from attnlab.common.validation import integer, one_of, positive
from attnlab.rfa.bias import NAMES, mean_matrix, moment_bias
from attnlab.rfa.features import AttentionFeatures, each_token_as_query
from attnlab.rfa.learners.base import RidgeOnFeatures
from attnlab.rfa.position import ENCODINGS, encode
from attnlab.rfa.scores import check_score


class ScoreParameter:
    """Lets the parameter ``score`` (what attention does to its scores) live beside scikit-learn's method ``score``.

    Reading ``estimator.score`` gives the method; assigning stores the parameter, which ``get_params`` reports.
    """

    def __get__(self, estimator: RidgeOnFeatures | None, owner: type | None = None) -> Any:
        return RidgeOnFeatures.score if estimator is None else MethodType(RidgeOnFeatures.score, estimator)

    def __set__(self, estimator: RidgeOnFeatures, value: Any) -> None:
        estimator.__dict__["score"] = value


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
    bias_scale, tau : scale of the bias; standard deviation of the entries of W.
    ridge : penalty lambda, or a sequence of candidates of which leave-one-out picks the best.
    score : ``relu``, ``exp``, ``identity``, ``square``, ``erf``, ``softmax``.
    normalize : ``mean`` (1/N), ``softmax`` over the keys, ``relu_sum`` (ReLU scores divided by their sum).
    position : positional encoding of the keys, None, ``"onehot"`` or ``"sinusoidal"``.
    self_attention : every token is the query in turn and attends to all tokens; y is (n, tokens) or (n, tokens, k).
    loss : ``squared``, ``logistic`` (y = ±1, ``predict`` gives the margin) or ``huber``.
    norm_bound : minimise over the ball |theta| <= norm_bound instead of penalising.
    solver : ``dual`` (n x n system), ``streamed`` (same, features computed twice, memory O(n^2) for any number of
        heads), ``primal`` (P x P), ``cg`` (Nyström-preconditioned), ``auto``.
    dtype, device : of features and Gram matrix; the solve is in float64.
    n_tokens : tokens of the flat form ``X (n, n_tokens * d)``.
    random_state : seed of the heads; the first M heads are the same for any larger n_heads.

    Attributes
    ----------
    coef_ : theta in feature order (P, k);  values_ : the same by head, (M, d+1, k).
    bias_ : S, the mean of W before scaling, or None;  seed_ : seed of the heads.
    ridge_, converged_, n_iter_, path_ : what the solver did.

    Examples
    --------
    >>> from attnlab import rfa
    >>> X, y = rfa.Task(target="key_power", p=1, d=4, n_keys=3).sample(200)
    >>> model = rfa.RandomFeatureAttention(n_heads=50, random_state=0).fit(X[:150], y[:150])
    >>> model.score(X[150:], y[150:]) > 0.95
    True
    """

    score = ScoreParameter()

    def __init__(
        self,
        n_heads: Any = 1000,
        *,
        bias: Any = None,
        bias_scale: Any = 1.0,
        tau: Any = 0.5,
        ridge: Any = 1e-6,
        score: Any = "relu",
        normalize: Any = "mean",
        position: Any = None,
        self_attention: Any = False,
        loss: Any = "squared",
        norm_bound: Any = None,
        solver: Any = "auto",
        dtype: Any = "float32",
        device: Any = "cpu",
        n_tokens: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_heads = n_heads
        self.bias = bias
        self.bias_scale = bias_scale
        self.tau = tau
        self.ridge = ridge
        self.score = score  # stored beside the method, see ScoreParameter
        self.normalize = normalize
        self.position = position
        self.self_attention = self_attention
        self.loss = loss
        self.norm_bound = norm_bound
        self.solver = solver
        self.dtype = dtype
        self.device = device
        self.n_tokens = n_tokens
        self.random_state = random_state

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of this estimator, ``score`` being the score function."""
        return {**super().get_params(deep), "score": vars(self)["score"]}

    def fit(self, X: Any, y: Any) -> RandomFeatureAttention:
        """Draw the heads and fit their values to ``y`` (n,) or (n, k), or (n, tokens[, k]) in self-attention."""
        integer("n_heads", self.n_heads, low=1)
        positive("tau", self.tau)
        check_score(vars(self)["score"], self.normalize)
        if self.position is not None:
            one_of("position", self.position, ENCODINGS)
        super().fit(X, y)
        return self

    def _per_token(self) -> int | None:
        return self.tokens_ if self.self_attention else None

    def _prepare(self, X: np.ndarray, Y: np.ndarray) -> None:
        """The bias matrix S, checked against the width of the tokens or estimated."""
        d = self._inputs(X[:1]).shape[2]
        if isinstance(self.bias, str):
            one_of("bias", self.bias, NAMES)
        if isinstance(self.bias, str) and self.bias == "moment":
            self.bias_: np.ndarray | None = moment_bias(self._inputs(X).astype(np.float64), Y.mean(axis=1))
        else:
            given = self.bias if self.bias is None or isinstance(self.bias, str) else np.asarray(self.bias)
            self.bias_ = None if given is None else mean_matrix(given, d)[:d, :d]
        mean_matrix(self.bias_, d, self.bias_scale)

    def _inputs(self, X: np.ndarray) -> np.ndarray:
        """Places appended; in self-attention each token becomes a query before all tokens."""
        X = encode(X, self.position)
        return each_token_as_query(X) if self.self_attention else X

    def _feature_map(self) -> AttentionFeatures:
        d = self._inputs(np.zeros((1, self.tokens_, self.d_))).shape[2]
        score, normalize = check_score(vars(self)["score"], self.normalize)
        W0 = mean_matrix(self.bias_, d, self.bias_scale)
        return AttentionFeatures(self.n_heads, d, self.seed_, W0, self.tau, score, normalize)

    @property
    def values_(self) -> np.ndarray:
        """theta by head, ``(M, d + 1, k)``; the model's v_m are these divided by sqrt(M)."""
        return self._feature_map().by_head(self.coef_)
