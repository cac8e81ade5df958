"""The spectrum of a noisy attention matrix: eigenvalues of the tied one here, singular values in ``singular``."""

from attnlab.aim.spectrum import singular
from attnlab.aim.spectrum.quadrature_rules import check_rho, small_noise_slope
from attnlab.aim.spectrum.tied import (
    cubed_density,
    denoising_mmse,
    density,
    edges,
    finite_size,
    planted,
    prior_mean,
    quadrature,
    rie,
    second_moment,
    shrink,
    small_width_mmse,
    stieltjes,
)

__all__ = [
    "check_rho",
    "cubed_density",
    "denoising_mmse",
    "density",
    "edges",
    "finite_size",
    "planted",
    "prior_mean",
    "quadrature",
    "rie",
    "second_moment",
    "shrink",
    "singular",
    "small_noise_slope",
    "small_width_mmse",
    "stieltjes",
]
