"""The experiments of sequence multi-index models and the claims they decide."""

from attnlab.smi.figures.phase_retrieval import PHASE_RETRIEVAL
from attnlab.smi.figures.positional import POSITIONAL
from attnlab.smi.figures.sign_committee import SIGN_COMMITTEE
from attnlab.smi.figures.skip_thresholds import SKIP_THRESHOLDS
from attnlab.smi.figures.two_layers import TWO_LAYERS

# Titles of the papers that claims cite.
PAPERS = {
    "2502.00901": "Fundamental limits of learning in sequence multi-index models and deep attention networks",
    "2006.05228": "Phase retrieval in high dimensions: statistical and computational phase transitions",
    "1806.05451": "The committee machine: computational to statistical gaps in learning a two-layers neural network",
    "2402.03902": "A phase transition between positional and semantic learning in a solvable model of "
    "dot-product attention",
}

FIGURES = (TWO_LAYERS, SKIP_THRESHOLDS, PHASE_RETRIEVAL, SIGN_COMMITTEE, POSITIONAL)
