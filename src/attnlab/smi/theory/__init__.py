"""What is predicted of a link as d grows: overlaps, thresholds, transitions, errors."""

from attnlab.smi.theory.bayes import StateEvolution, state_evolution
from attnlab.smi.theory.generalization import generalization_error

__all__ = ["StateEvolution", "generalization_error", "state_evolution"]
