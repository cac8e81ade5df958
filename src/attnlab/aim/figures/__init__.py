"""The experiments of attention-indexed models and the claims they decide."""

from attnlab.aim.figures import deep, descent, dynamics, hardmax, phases, prediction, softmax, spectra
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
    deep.DEEP,
)

# Titles of the papers that claims cite.
PAPERS = {
    "2506.01582": "Bayes optimal learning of attention-indexed models",
}
