"""The experiments of attention-indexed models and the claims they decide."""

from attnlab.aim.figures import (
    deep,
    descent,
    dynamics,
    flow,
    hardmax,
    layouts,
    phases,
    prediction,
    softmax,
    spectra,
    training,
)
from attnlab.common.figure import Figure

FIGURES: tuple[Figure, ...] = (
    softmax.SOFTMAX,
    descent.DESCENT,
    hardmax.HARDMAX,
    hardmax.SMALL_WIDTH,
    phases.PHASES,
    phases.WEAK,
    dynamics.TRAJECTORY,
    dynamics.SIZES,
    spectra.SPECTRA,
    prediction.GENERALIZATION,
    prediction.BETA,
    layouts.LAYOUT_FIGURE,
    training.TRAINING,
    flow.FLOW,
    deep.DEEP,
)

# Titles of the papers that claims cite.
PAPERS = {
    "2609.03858": "",  # cited by its number
    "2506.01582": "Bayes optimal learning of attention-indexed models",
    "2509.24914": (
        "Single-Head Attention in High Dimensions: A Theory of Generalization, Weights Spectra, and Scaling Laws"
    ),
}
