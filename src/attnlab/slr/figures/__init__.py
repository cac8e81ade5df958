"""The experiments of single-location regression and the claims they decide."""

from attnlab.common.figure import Figure
from attnlab.slr.figures import advantage, descent, locations, portrait, probing, references, stochastic, success

FIGURES: tuple[Figure, ...] = (
    descent.MANIFOLD,
    descent.SMALL,
    descent.LARGE,
    descent.SCHEDULE,
    stochastic.SGD,
    portrait.PORTRAIT,
    success.SUCCESS,
    references.REFERENCES,
    locations.LOCATIONS,
    advantage.ADVANTAGE,
    probing.PROBING,
)

# Titles of the papers that claims cite.
PAPERS = {
    "2410.01537": "Attention layers provably solve single-location regression",
    "2509.21936": "Statistical advantage of softmax attention: insights from single-location regression",
}
