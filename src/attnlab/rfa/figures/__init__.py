"""The experiments E1-E9 on the model of arXiv:2307.11353, the complexity table as a figure, and their claims."""

from attnlab.common.figure import Figure
from attnlab.rfa.figures.bias import ROTATION, SCALE
from attnlab.rfa.figures.bounds import BOUNDS
from attnlab.rfa.figures.complexity import COMPLEXITY
from attnlab.rfa.figures.heads import HEADS
from attnlab.rfa.figures.heads_needed import HEADS_NEEDED
from attnlab.rfa.figures.learning import CORRELATIONS, KEYS
from attnlab.rfa.figures.scores import SCORE
from attnlab.rfa.figures.sizes import DIMENSION, KEY_COUNT
from attnlab.rfa.figures.staircase import STAIRCASE

FIGURES: tuple[Figure, ...] = (
    KEYS,
    CORRELATIONS,
    ROTATION,
    STAIRCASE,
    HEADS,
    HEADS_NEEDED,
    SCALE,
    SCORE,
    KEY_COUNT,
    DIMENSION,
    COMPLEXITY,
    BOUNDS,
)

# Titles of the papers that claims cite.
PAPERS = {
    "2307.11353": "What can a single attention layer learn? A study through the random features lens",
}
