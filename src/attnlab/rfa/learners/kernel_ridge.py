"""Kernel ridge regression with the exact kernels of infinitely many heads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from attnlab.common.compute import Compute
from attnlab.common.validation import one_of
from attnlab.rfa.activations import Activation
from attnlab.rfa.backend import Backend, Blas, backend
from attnlab.rfa.kernels import KINDS, kernel
from attnlab.rfa.learners.base import KernelMachine, check_ridge
from attnlab.rfa.sets import pad
from attnlab.rfa.solvers.gram_fit import fit_gram


class AttentionKernelRidge(KernelMachine):
    r"""Kernel ridge regression: random-feature attention with infinitely many heads.

    .. math:: f(x) = \sum_j \alpha_j K(x, x_j), \qquad (K + n\lambda I)\alpha = y

    X is ``(n, N + 1, d)`` or a list of examples ``(N_i + 1, d)`` with different numbers of keys; tokens need not have
    unit length.

    Parameters
    ----------
    kernel : ``rfa``, ``brfa``, ``exp``, ``identity``, ``square``, ``erf``, ``rfmlp``, ``patch`` or an
        :class:`~attnlab.rfa.activations.base.Activation`, see :func:`attnlab.rfa.kernel`.
    bias, bias_scale : mean of W; ``brfa`` means ``bias="identity"``.
    ridge : penalty lambda, candidates of which leave-one-out picks the best, or a :class:`NormBall`.
    loss : as in :class:`RandomFeatureAttention`.
    compute : device and dtype of the kernel (float32 by default) and device of the solve, which is in float64.
    n_tokens : tokens of the flat form.

    Attributes
    ----------
    alpha_ : dual coefficients (n, k).
    X_fit_ : the training tokens, array or list.
    """

    options: ClassVar[tuple[str, ...]] = ("device", "dtype")

    def __init__(
        self,
        kernel: Any = "rfa",
        *,
        bias: Any = None,
        bias_scale: Any = 1.0,
        ridge: Any = 1e-6,
        loss: Any = "squared",
        compute: Any = None,
        n_tokens: Any = None,
    ) -> None:
        self.kernel = kernel
        self.bias = bias
        self.bias_scale = bias_scale
        self.ridge = ridge
        self.loss = loss
        self.compute = compute
        self.n_tokens = n_tokens

    def fit(self, X: Any, y: Any) -> AttentionKernelRidge:
        """Solve for the dual coefficients; all outputs share one factorisation."""
        if not isinstance(self.kernel, Activation):
            one_of("kernel", self.kernel, KINDS)
        ridge = check_ridge(self.ridge)
        tokens = self._examples(X, reset=True)
        Y = self._targets(y, len(tokens))
        # The kernel is a NumPy array wherever it was computed; on a GPU the system is solved there as well.
        self.alpha_ = self._ended(fit_gram(self._kernel(tokens, None), Y, ridge, self.loss, self._solver()))
        self.X_fit_ = tokens
        return self

    def _solver(self) -> Backend:
        machine = self._machine
        return backend(Compute("gpu")) if machine.device == "gpu" else Blas()

    def _shared_path(self, X: Any, y: Any, X_test: Any, sizes: Sequence[int]) -> np.ndarray | None:
        most = max(sizes)
        if not isinstance(X, np.ndarray):
            return None
        tokens = self._examples(X[:most], reset=True)
        Y = self._targets(y[:most], most)
        K, solver = self._kernel(tokens, None), self._solver()
        # The kernel does not depend on the sample: the Gram matrix of the first n examples is a leading block.
        alphas = [solver.solve(K[:n, :n], n * self._one_ridge(), Y[:n]) for n in sizes]
        C = self._kernel(self._examples(X_test, reset=False), tokens).astype(np.float64)
        return np.stack([(C[:, : len(a)] @ a).reshape(len(C), *self.output_shape_) for a in alphas])

    def predict(self, X: Any) -> np.ndarray:
        """f(X), of the shape of y."""
        check_is_fitted(self, "alpha_")
        # At small ridges alpha is large and of both signs: the sum cancels, and float32 would lose its digits.
        f = self._kernel(self._examples(X, reset=False), self.X_fit_).astype(np.float64) @ self.alpha_
        return np.asarray(f.reshape(len(f), *self.output_shape_))

    def _kernel(self, X: Any, X2: Any) -> np.ndarray:
        bias = None if self.bias is None else self.bias if isinstance(self.bias, str) else np.asarray(self.bias)
        law = {"kind": self.kernel, "bias": bias, "bias_scale": self.bias_scale}
        return kernel(X, X2, **law, dtype=self._dtype, device=self._machine.device)

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
