"""The experiments of sequence multi-index models and the claims they decide."""

from attnlab.smi.figures.phase_retrieval import PHASE_RETRIEVAL
from attnlab.smi.figures.positional import POSITIONAL
from attnlab.smi.figures.sign_committee import SIGN_COMMITTEE
from attnlab.smi.figures.skip_thresholds import SKIP_THRESHOLDS
from attnlab.smi.figures.two_layers import TWO_LAYERS

FIGURES = (TWO_LAYERS, SKIP_THRESHOLDS, PHASE_RETRIEVAL, SIGN_COMMITTEE, POSITIONAL)
