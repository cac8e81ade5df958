"""The experiments of sequence multi-index models and the claims they decide."""

from attnlab.common.figure import Figure

FIGURES: tuple[Figure, ...] = ()
