"""Kernel ridge regression with the exact kernels of infinitely many heads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from attnlab.common.validation import one_of, positive
from attnlab.rfa.backend import solve_shifted
from attnlab.rfa.kernels import KINDS, kernel
from attnlab.rfa.learners.base import KernelMachine, check_ridge, fit_gram
from attnlab.rfa.sets import pad
from attnlab.rfa.solvers.erm import LOSSES


class AttentionKernelRidge(KernelMachine):
    r"""Infinitely many heads: :math:`f(x) = \sum_j \alpha_j K(x, x_j)` with :math:`(K + n\lambda I)\alpha = y`.

    X is ``(n, N + 1, d)`` or a list of examples ``(N_i + 1, d)`` with different numbers of keys; tokens need not have
    unit length.

    Parameters
    ----------
    kernel : ``rfa``, ``brfa``, ``exp``, ``identity``, ``square``, ``erf``, ``mlp``, ``patch``, see
        :func:`attnlab.rfa.kernel`.
    bias, bias_scale, tau : law of W; ``brfa`` means ``bias="identity"``.
    ridge : penalty lambda, or candidates of which leave-one-out picks the best.
    loss, norm_bound : as in :class:`RandomFeatureAttention`.
    dtype : of the kernel; the solve is in float64.
    n_tokens : tokens of the flat form.

    Attributes
    ----------
    alpha_ : dual coefficients (n, k).
    X_fit_ : the training tokens, array or list.
    """

    def __init__(
        self,
        kernel: Any = "rfa",
        *,
        bias: Any = None,
        bias_scale: Any = 1.0,
        tau: Any = 0.5,
        ridge: Any = 1e-6,
        loss: Any = "squared",
        norm_bound: Any = None,
        dtype: Any = "float32",
        n_tokens: Any = None,
    ) -> None:
        self.kernel = kernel
        self.bias = bias
        self.bias_scale = bias_scale
        self.tau = tau
        self.ridge = ridge
        self.loss = loss
        self.norm_bound = norm_bound
        self.dtype = dtype
        self.n_tokens = n_tokens

    def fit(self, X: Any, y: Any) -> AttentionKernelRidge:
        """Solve for the dual coefficients; all outputs share one factorisation."""
        one_of("kernel", self.kernel, KINDS)
        one_of("loss", self.loss, LOSSES)
        positive("tau", self.tau)
        ridges = check_ridge(self.ridge)
        tokens = self._examples(X, reset=True)
        Y = self._targets(y, len(tokens))
        K = self._kernel(tokens, None)
        if len(ridges) == 1 and self.loss == "squared" and self.norm_bound is None:
            self.alpha_ = solve_shifted(K, len(Y) * float(ridges[0]), Y)
            self.ridge_, self.converged_, self.n_iter_, self.path_ = float(ridges[0]), True, 1, None
        else:
            fitted = fit_gram(K, Y, ridges, self.loss, self.norm_bound)
            self.alpha_, self.ridge_, self.converged_, self.n_iter_, self.path_ = fitted
        self.X_fit_ = tokens
        return self

    def predict(self, X: Any) -> np.ndarray:
        """f(X), of the shape of y."""
        check_is_fitted(self, "alpha_")
        f = self._kernel(self._examples(X, reset=False), self.X_fit_).astype(np.float64) @ self.alpha_
        return np.asarray(f.reshape(len(f), *self.output_shape_))

    def _kernel(self, X: Any, X2: Any) -> np.ndarray:
        bias = None if self.bias is None else self.bias if isinstance(self.bias, str) else np.asarray(self.bias)
        return kernel(X, X2, kind=self.kernel, bias=bias, bias_scale=self.bias_scale, tau=self.tau, dtype=self.dtype)

    def _examples(self, X: Any, *, reset: bool) -> np.ndarray | list[np.ndarray]:
        """A token array, or a list of examples of different lengths."""
        if isinstance(X, Sequence) and len(X) and all(np.ndim(x) == 2 for x in X) and len({len(x) for x in X}) > 1:
            d = pad(X).query.shape[1]
            if reset:
                self.tokens_, self.d_ = 0, d
            elif d != self.d_:
                raise ValueError(f"X must have tokens of width d={self.d_}, got {d}")
            return [np.asarray(x, dtype=np.float64) for x in X]
        if not reset and isinstance(X, Sequence):
            X = np.asarray(X)
        return self._tokens(X, reset=reset)
