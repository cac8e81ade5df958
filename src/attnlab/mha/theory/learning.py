"""Errors of prediction that no data are needed for."""

from __future__ import annotations

from attnlab.common.law import from_law
from attnlab.common.prediction import Prediction
from attnlab.common.validation import positive
from attnlab.mha.task import Task
from attnlab.mha.theory.counts import fewest_examples, layer_numbers

# Least squares is in its large-n regime from so many times the fewest possible examples on.
PLENTY = 4


@from_law(Task, "noise_std", d=2, k=2, n_heads=1)
def bayes_error(task: Task) -> Prediction:
    r"""Squared error of the predictor that knows the layer, :math:`\sigma^2`.

    Source: definition.  Status: exact.

    >>> bayes_error(noise_std=0.5)
    0.25 (exact)
    """
    return Prediction(task.noise_std**2)


@from_law(Task, "n_heads", "d", "k", "noise_std")
def least_squares_error(task: Task, n: float) -> Prediction:
    r"""Test error of least squares that has found the layer, :math:`\sigma^2(1 + P/(n k o))` with P unknowns.

    Classical for a well-specified model as n grows, whatever the model. With fewer than four times
    :func:`examples_needed`, or a layer with equivalences, the value is not reliable and ``converged`` is False.

    Source: derived here.  Status: asymptotic.

    >>> least_squares_error(1000, n_heads=2, d=8, k=4, noise_std=0.1)
    0.01008 (asymptotic)
    """
    n = positive("n", n)
    numbers = layer_numbers(task.n_heads, task.d, task.outputs)
    reached = (
        task.k >= 2
        and n >= PLENTY * fewest_examples(task.n_heads, task.d, task.k, task.outputs)
        and task.equivalences.unique
    )
    value = task.noise_std**2 * (1 + numbers / (n * task.k * task.outputs))
    return Prediction(value, status="asymptotic", converged=bool(reached))
