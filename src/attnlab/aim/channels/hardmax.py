"""Hardmax attention: the output says which entry of each row is the largest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from attnlab.aim.channels.channel import Channel, Integral, NotSolved, rows_sum_to_one
from attnlab.aim.channels.residual import Residual
from attnlab.aim.channels.rows import rows_error
from attnlab.aim.indices import Layout
from attnlab.common.validation import nonnegative

if TYPE_CHECKING:
    import jax


@dataclass(frozen=True)
class Hardmax(Channel):
    r"""y_a = one-hot of argmax_b h_ab (beta -> infinity).

    Two tied tokens, s_i the signs of D_1 = h_11 - h_12 and D_2 = h_22 - h_12, k_i = s_i D_i / sqrt(3V), r = s_1 s_2 /
    3:

    .. math:: Z = \Phi_2(k_1, k_2; r), \qquad \partial_{k_1}\Phi_2 = \varphi(k_1)\,\Phi\big((k_2 - r
       k_1)/\sqrt{1-r^2}\big).

    More tied tokens: Gaussian orthant integration (:mod:`attnlab.aim.channels.orthant`). Untied: the rows are
    independent, :math:`Z(y_a = b) = E_\zeta\prod_{c\ne b}\Phi((\omega_b - \omega_c)/\sqrt V + \zeta)`. ``legacy`` puts
    the bivariate density :math:`\varphi_2(k_1, k_2; r)` in the place of the derivative, which reproduces the public
    curves of 2506.01582.

    Parameters
    ----------
    noise : variance of the Gaussian noise added to the whitened indices.
    legacy : the published output gradient instead of the right one; two tied tokens.
    """

    noise: float = 0.0
    legacy: bool = False
    name: ClassVar[str] = "hardmax"
    shift_invariant: ClassVar[bool] = True

    def __post_init__(self) -> None:
        nonnegative("noise", self.noise)

    @property
    def scale_free(self) -> bool:
        """Only the noise has a scale."""
        return self.noise == 0

    def check(self, layout: Layout) -> None:
        """Refuse one key, masks, and what is not solved."""
        from attnlab.aim.channels.orthant import MAX_TOKENS

        if layout.keys < 2:
            raise NotSolved(f"channel 'hardmax' needs at least 2 tokens, got tokens={layout.keys}")
        if not layout.visible.all():
            raise NotSolved("mask must be 'full' for channel 'hardmax': masked hardmax is not solved")
        if self.legacy and (not layout.tied or layout.keys != 2):
            raise NotSolved(f"channel 'hardmax_legacy' exists for 2 tokens of tied attention, got tokens={layout.keys}")
        if layout.two_variances and layout.keys > 2:
            raise NotSolved(
                f"tokens must be 2 for channel 'hardmax' with tied=False and attention='self', got {layout.keys}: "
                "symmetric and antisymmetric errors differ and the integral is not solved; attention='cross' is"
            )
        if layout.keys > MAX_TOKENS:
            raise NotSolved(f"hardmax is integrated for at most {MAX_TOKENS} tokens, got tokens={layout.keys}")

    def output(self, h: np.ndarray, rng: np.random.Generator | None = None, visible: Any = None) -> np.ndarray:
        """y for indices h."""
        return np.asarray(np.eye(h.shape[-1])[h.argmax(axis=-1)])

    def summary(self, y: np.ndarray, layout: Layout) -> np.ndarray:
        """The winner of each row."""
        y = np.asarray(y, dtype=np.float64)
        rows_sum_to_one(y, layout.visible)
        if not np.isin(y, (0.0, 1.0)).all():
            raise ValueError("y of channel 'hardmax' must have one-hot rows")
        return np.asarray(y.argmax(axis=-1), dtype=np.float64)

    def g(self, summary: jax.Array, omega: jax.Array, V: jax.Array, layout: Layout) -> jax.Array:
        """The output function."""
        from attnlab.aim.channels import hardmax_gradient, orthant

        # The output sees z plus noise, of law N(omega, V + noise), and g is a gradient in omega: it needs no other law.
        spread = V + self.noise
        if not layout.tied:
            return hardmax_gradient.rows(summary, omega, spread, layout)
        if layout.keys == 2:
            gradient = hardmax_gradient.published_pair if self.legacy else hardmax_gradient.pair
            return gradient(summary, omega, spread)
        return (orthant.posterior_mean(summary, omega, spread, layout.keys) - omega) / spread

    def strength(self, V: Any, total: float, layout: Layout) -> Integral:
        """s(tau) / (V + noise), tau = (V + noise)/(total + noise): hardmax ignores the scale of h."""
        from attnlab.aim.channels.hardmax_strength import scale_function

        spread = np.asarray(V, dtype=float) + self.noise
        scale = scale_function(layout.keys, layout.tied, self.legacy)
        # The rows of a tied h share entries, so that its table is of whole sequences; untied rows are independent and
        # alike.
        rows = 1 if layout.tied else layout.queries
        tau = spread / (total + self.noise)
        return Integral(rows * scale(tau) / spread, rows * scale.error(tau) / spread)

    def strength_parts(self, Vs: float, Va: float, layout: Layout) -> tuple[float, float]:
        """Two tokens: a plane integral over the two logit differences."""
        from attnlab.aim.channels.hardmax_parts import strength_parts

        # Both parts of an untied h have the variance 1 in all: what is not residual is known.
        return strength_parts(Vs + self.noise, Va + self.noise, 1 - Vs, 1 - Va)

    def entropy(self, V: float, total: float, layout: Layout) -> Integral:
        """2 sum_r E[P log P], two tied tokens."""
        from attnlab.aim.channels.hardmax_strength import pair_entropy

        if not layout.tied or layout.keys != 2 or self.legacy:
            return super().entropy(V, total, layout)
        return Integral(pair_entropy((total - V) / (V + self.noise)))

    def generalization(self, residual: Residual, predictor: str) -> Integral:
        """Row by row; two entries in closed form, from the angle between the true and the estimated difference."""
        return rows_error(residual, self.noise, predictor, self.output, _two_signs)


def _two_signs(q: float, V: float, predictor: str) -> float:
    """arccos(share)/pi (Bayes) or 2 arccos(sqrt(share))/pi (plug-in), share = q/(q + V)."""
    share = np.clip(q / (q + V), 0.0, 1.0)
    return float(np.arccos(share) / np.pi if predictor == "bayes" else 2 * np.arccos(np.sqrt(share)) / np.pi)
