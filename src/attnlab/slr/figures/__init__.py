"""The experiments of single-location regression and the claims they decide."""

from attnlab.common.figure import Figure
from attnlab.slr.figures import descent

FIGURES: tuple[Figure, ...] = (descent.MANIFOLD,)
