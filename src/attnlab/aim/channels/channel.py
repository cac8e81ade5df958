r"""What an output channel is: how y depends on the indices, and what y says about them.

==========  ======================================================================================
symbol      meaning
==========  ======================================================================================
omega, V    current mean and variance of the whitened indices: z ~ N(omega, V I), p components
total       variance of z itself, Q_0 = q + V
Z           probability (density) of y under that law
g           output function, grad_omega log Z = (E[z | y, omega] - omega) / V
noise       variance added to z before the output; it enters as V -> V + noise
k           number of linear measurements of z that an output contains (exact channels)
==========  ======================================================================================

A channel is a small immutable object in a file of its own. It owns its parameters and everything that depends on it: no
other file asks which channel it is. A channel that writes ``output`` and ``log_density`` only is integrated numerically
(:mod:`attnlab.aim.channels.importance`), slower and with error bars; what has no formula is refused
(:class:`NotSolved`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from attnlab.aim.channels.residual import Residual
from attnlab.aim.indices import Layout
from attnlab.aim.quasi_random import normal_points
from attnlab.common.seeds import stream
from attnlab.common.validation import finite_array, one_of

if TYPE_CHECKING:
    import jax

BATCHES, POINTS = 8, 2**13  # independent scrambles, whose spread is the error bar, and points in each
PREDICTION_POINTS = 256


class NotSolved(ValueError):
    """A quantity without a known or implemented formula for this channel."""


class Integral(NamedTuple):
    """A number with its standard error, 0 where it is exact to rounding."""

    value: Any
    error: Any = 0.0


@dataclass(frozen=True)
class Channel:
    """The interface, and numerical integration for what a channel does not write itself."""

    name: ClassVar[str] = ""
    shift_invariant: ClassVar[bool] = False  # whether adding one constant to a row of h leaves y as it is
    losses: ClassVar[tuple[str, ...]] = ()  # names of the losses by which S can be trained on y

    noise = 0.0  # without annotation: a field here would come first in every subclass

    @property
    def solved(self) -> bool:
        """Whether E|g|^2 has a formula or a table of the channel's own."""
        return type(self).strength is not Channel.strength

    @property
    def scale_free(self) -> bool:
        """Whether multiplying h by a positive number leaves y as it is."""
        return False

    def check(self, layout: Layout) -> None:
        """Refuse layouts for which the channel says nothing or is not solved."""
        if not layout.visible.all():
            raise NotSolved(f"mask must be 'full' for channel {self.name!r}: its output sees all indices")

    # ---- the law

    def output(self, h: np.ndarray, rng: np.random.Generator | None = None, visible: Any = None) -> np.ndarray:
        """y for indices h (..., queries, keys), 0 where ``visible`` is False."""
        raise NotImplementedError

    def log_density(self, y: Any, h: Any) -> Any:
        """log P(y | h) in JAX, arrays (..., queries, keys) to (...)."""
        raise NotSolved(f"channel {self.name!r} has no density: it is integrated by its own formulas")

    def log_output(self, h: np.ndarray, visible: Any = None) -> np.ndarray:
        """log y, for channels whose outputs can underflow."""
        raise ValueError(f"log outputs exist for channel 'softmax' only, got {self.name!r}")

    def mean_output(self, h: np.ndarray, visible: Any = None) -> np.ndarray:
        """E[y | h]: the output itself where it is not random."""
        return self.output(h, stream(0, "theory", "aim", "output"), visible)

    # ---- what an output says of the indices

    def informative(self, layout: Layout) -> int | None:
        """k, the number of exact linear measurements in a sequence; None when the channel is not of this kind."""
        return None

    def summary(self, y: np.ndarray, layout: Layout) -> np.ndarray:
        """Check outputs (n, queries, keys) and reduce them to what ``g`` needs, (n, m) in float64."""
        return finite_array("y", y, shape=(None, *layout.shape)).astype(np.float64).reshape(len(y), -1)

    def g(self, summary: jax.Array, omega: jax.Array, V: jax.Array, layout: Layout) -> jax.Array:
        """The output function, (n, p)."""
        from attnlab.aim.channels.importance import output_function

        return output_function(self, summary, omega, V, layout)

    def strength(self, V: Any, total: float, layout: Layout) -> Integral:
        """E|g|^2 for z of variance ``total`` known up to V; broadcasts over V."""
        from attnlab.aim.channels.importance import interpolated_strength

        return interpolated_strength(self, V, total, layout)

    def strength_parts(self, Vs: float, Va: float, layout: Layout) -> tuple[float, float]:
        """E|g_s|^2 and E|g_a|^2 of untied self-attention, for residual variances of symmetric and antisymmetric
        parts.
        """
        raise NotSolved(
            f"untied self-attention is solved for softmax, linear and hardmax, not for {self.name!r}; "
            "attention='cross' is solved for every channel"
        )

    def entropy(self, V: float, total: float, layout: Layout) -> Integral:
        """Psi_out = E log Z, up to a constant."""
        raise NotSolved("the free entropy is known for softmax, linear and, with 2 tied tokens, hardmax")

    # ---- training

    def loss_and_slope(self, loss: str, h: Any, target: Any, layout: Layout) -> tuple[Any, Any]:
        """One of ``losses`` for each sequence, and its derivative in h; NumPy or JAX, as h is.

        ``target`` is y, or its ``summary`` for the loss ``logits``.
        """
        raise NotSolved(f"channel {self.name!r} has no loss with a gradient; 'softmax' and 'linear' have")

    def majorant(self, loss: str, h: np.ndarray, layout: Layout) -> np.ndarray:
        """A h, for A not below the second derivative of a convex loss in h, anywhere."""
        raise NotSolved(f"channel {self.name!r} has no convex loss; 'softmax' and 'linear' have")

    def check_loss(self, loss: str) -> str:
        """Refuse a loss that the channel does not have."""
        if not self.losses:
            raise NotSolved(f"channel {self.name!r} has no loss with a gradient; 'softmax' and 'linear' have")
        return one_of(f"loss for channel {self.name!r}", loss, self.losses)

    # ---- predicting fresh outputs

    def generalization(self, residual: Residual, predictor: str) -> Integral:
        r"""E|y - y_hat|_F^2: Bayes :math:`\tfrac12 E|y - y'|^2`, two outputs that share omega; plug-in from two draws
        of the output at omega, whose product is unbiased where the output is random.
        """
        found = [self._generalization(residual, predictor, seed) for seed in range(BATCHES)]
        return batch_mean(found)

    def _generalization(self, residual: Residual, predictor: str, seed: int) -> float:
        layout, rng = residual.layout, stream(seed, "theory", "aim", "output")
        omega, first, second = normal_points(3 * layout.p, POINTS, seed).reshape(POINTS, 3, layout.p).swapaxes(0, 1)
        omega = residual.estimate(omega)
        draws = [omega + residual.draw(first, self.noise), omega + residual.draw(second, self.noise), omega, omega]
        y, other, one, two = (self.output(layout.unwhiten(z), rng, layout.visible) for z in draws)
        if predictor == "bayes":
            return float(((y - other) ** 2).sum(axis=(1, 2)).mean() / 2)
        return float(((y - one) * (y - two)).sum(axis=(1, 2)).mean())

    def bayes_output(self, h: np.ndarray, residual: Residual) -> np.ndarray:
        """E y for indices known up to the residual: the Bayes prediction at an estimate with that error."""
        layout, rng = residual.layout, stream(0, "theory", "aim", "output")
        draws = layout.unwhiten(residual.draw(normal_points(layout.p, PREDICTION_POINTS), self.noise))
        return np.asarray(sum(self.output(h + draw, rng, layout.visible) for draw in draws) / len(draws))


def batch_mean(found: list[float]) -> Integral:
    """Mean of independent estimates and its standard error."""
    return Integral(float(np.mean(found)), float(np.std(found, ddof=1) / np.sqrt(len(found))))


def rows_sum_to_one(y: np.ndarray, visible: np.ndarray) -> None:
    """Refuse outputs that are not weights over the visible entries of each row; zeros elsewhere are no underflow."""
    if (y[:, ~visible] != 0).any():
        raise ValueError("y has weight on entries that the mask hides")
    worst = np.abs(y[:, visible.any(axis=1)].sum(axis=-1) - 1).max()
    if worst > 1e-4:
        raise ValueError(f"the rows of y must sum to one, the worst is off by {worst:.3g}")
