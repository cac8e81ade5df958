r"""The test error of ridge regression on finitely or infinitely many random heads, without a fitted constant.

==========  =======================================================================================
symbol      meaning
==========  =======================================================================================
n, M        examples; heads of attention (or width of the MLP)
f_j^2       energy of the target in mode j of the kernel
nu          effective ridge;  df degrees of freedom (see :mod:`attnlab.rfa.theory.equivalent`)
Upsilon     (df + nu df') / n, the share of the sample spent on noise; the error has a pole at one
==========  =======================================================================================
"""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.common.arrays import ArrayLike
from attnlab.common.prediction import Prediction
from attnlab.common.validation import nonnegative, one_of
from attnlab.rfa.task import Task
from attnlab.rfa.theory.complexity import modes
from attnlab.rfa.theory.equivalent import Equivalent, solve
from attnlab.rfa.theory.sampled import sampled_learning_curve
from attnlab.rfa.theory.spectrum import MODELS, Spectrum, spectrum

# The result is called converged if leaving out the highest degrees changes it by less than this.
TRUNCATION = 0.01


def learning_curve(
    task: Task,
    n: ArrayLike,
    model: str = "rfa",
    ridge: float = 1e-6,
    *,
    n_heads: ArrayLike | None = None,
    width: ArrayLike | None = None,
    bias_scale: float = 1.0,
    tail: str = "ridge",
) -> Prediction:
    r"""Test error over Var f* of ridge regression after n examples, with M heads (or units) or infinitely many.

    .. math:: \frac{\mathcal E}{\mathrm{Var} f_*} = \frac{1}{\mathrm{Var} f_*}\left[\frac{\mathrm{bias} + \sigma^2}
              {1 - \Upsilon} - \sigma^2\right], \qquad
              \mathrm{bias} = \nu^2 \sum_j f_j^2 q_j^2 \Big(1 - \sum_c \frac{L_{cj} \delta_c'}{(1+\delta_c)^2}\Big)

    with the solution of :mod:`attnlab.rfa.theory.equivalent`.

    Parameters
    ----------
    n : sample sizes.
    model : ``rfa``, ``rfmlp``, or ``brfa``, whose spectrum is read off a sample by :func:`sampled_learning_curve`.
    ridge : penalty lambda of the learners.
    n_heads : heads of attention; None for infinitely many.  width : units of ``rfmlp``; None for infinitely many.
    bias_scale : scale of the bias of ``brfa``.
    tail : what the modes do that are too many to be listed. ``ridge``: their trace adds to the ridge, as if the
        features did not carry them. ``features``: they are modes of vanishing eigenvalue, and the result does not
        depend on where the list ends. The same for infinitely many heads; ``ridge`` is up to 1 % lower for few heads
        and up to 15 % for few units of ``rfmlp``, where it says not converged and simulations follow ``features``.

    Returns
    -------
    Prediction whose value broadcasts over n and heads. ``error`` is the change when the highest degrees are left out;
    ``detail`` holds ``nu``, ``df``, ``upsilon`` and ``residual`` of the equations.

    Source: infinitely many heads, omniscient risk estimate (arXiv:2006.13198, arXiv:2110.03922) with the spectra
    derived here; finitely many, deterministic equivalent of random features (arXiv:2405.15699) with one class for the
    constant coordinate of the keys and one for the others, derived here.
    Status: asymptotic; within tens of per cent at small sizes, low where the error is small.

    >>> task = Task(target="key_power", p=2)
    >>> limit, finite = learning_curve(task, 1024), learning_curve(task, 1024, n_heads=[100, 1000])
    >>> limit.converged, bool(finite[0] > 2 * limit > finite[1] > limit)
    (True, True)
    """
    if one_of("model", model, (*MODELS, "brfa")) == "brfa":
        return sampled_learning_curve(
            task, n, model, ridge, units=settings(n, model, n_heads, width)[1], bias_scale=bias_scale
        )
    sizes, units = settings(n, model, n_heads, width)
    ridge = nonnegative("ridge", ridge)
    shape, (sizes, units) = np.broadcast_shapes(sizes.shape, units.shape), np.broadcast_arrays(sizes, units)
    bulk = spectrum(task.d, task.n_keys, model)
    energy, parts = modes(task, model)
    solved, shorter = (_solve(b, sizes.ravel(), units.ravel(), ridge, tail) for b in (bulk, _shortened(bulk)))
    value = relative_error(solved, energy, parts, task)
    change = np.abs(relative_error(shorter, energy, parts, task) - value)
    # More than the whole trace in the listed modes is rounding, which no residual shows.
    converged = (solved.residual < 1e-6) & (change <= TRUNCATION * value) & bulk.resolved
    detail = {"nu": solved.nu, "df": solved.df, "upsilon": 1 - solved.gap, "residual": solved.residual}
    return Prediction(
        value=_shaped(value, shape),
        error=_shaped(change, shape),
        status="asymptotic",
        converged=_shaped(converged, shape),
        detail={name: _shaped(column, shape) for name, column in detail.items()},
    )


def values_only(task: Task, n: ArrayLike, units: ArrayLike, model: str, ridge: float, tail: str) -> np.ndarray:
    """The errors of :func:`learning_curve` along paired sizes and heads (or units), without their uncertainty."""
    sizes, heads = np.broadcast_arrays(np.asarray(n, dtype=float), np.asarray(units, dtype=float))
    solved = _solve(spectrum(task.d, task.n_keys, model), sizes, heads, ridge, tail)
    return relative_error(solved, *modes(task, model), task)


def _solve(bulk: Spectrum, n: np.ndarray, units: np.ndarray, ridge: float, tail: str) -> Equivalent:
    if one_of("tail", tail, ("features", "ridge")) == "features":
        return solve(bulk.with_tail(), n, units, n * ridge)
    # Eigenvalues far below nu act on the Gram matrix as their trace times the identity.
    return solve(bulk, n, units, n * ridge + bulk.tail)


def settings(n: ArrayLike, model: str, n_heads: ArrayLike | None, width: ArrayLike | None) -> tuple[Any, Any]:
    """Sample sizes and numbers of heads (or units) as float arrays; None is infinity."""
    own, other = ("width", "n_heads") if model == "rfmlp" else ("n_heads", "width")
    given = {"n_heads": n_heads, "width": width}
    if given[other] is not None:
        raise ValueError(f"{other} is not a parameter of model={model!r}; its size is {own}")
    return _at_least_one("n", n), np.array(np.inf) if given[own] is None else _at_least_one(own, given[own])


def _at_least_one(name: str, value: Any) -> np.ndarray:
    array = np.asarray(value, dtype=float)
    if np.isnan(array).any() or (array < 1).any():
        raise ValueError(f"{name} must be >= 1, got {value!r}")
    return array


def relative_error(solved: Equivalent, energy: np.ndarray, parts: np.ndarray, task: Task) -> np.ndarray:
    """Error over Var f* from the solution, the target's energies and the eigenvalues of its modes by class."""
    noise = task.noise_std**2
    bias = solved.unlearned(parts) @ energy
    return np.asarray(((bias + noise) / solved.gap - noise) / task.variance)


def _shortened(bulk: Spectrum) -> Spectrum:
    """Without the two highest degrees."""
    # Degrees of query and key are listed up to the same one each; those of the MLP up to their sum.
    size = max if len(bulk.counts) > 1 else sum
    return bulk.up_to(max(size(label) for label in bulk.degrees if label) - 2)


def _shaped(column: np.ndarray, shape: tuple[int, ...]) -> Any:
    return column.reshape(shape) if shape else column[0].item()
