"""What is predicted of a link as d grows: overlaps, thresholds, transitions, errors."""

from attnlab.smi.theory.bayes import StateEvolution, state_evolution
from attnlab.smi.theory.bounds import counting_bound, recovery_bound
from attnlab.smi.theory.curve import Curve, curve
from attnlab.smi.theory.generalization import generalization_error
from attnlab.smi.theory.thresholds import Step, Thresholds, thresholds, weak_recovery

__all__ = [
    "Curve",
    "StateEvolution",
    "Step",
    "Thresholds",
    "counting_bound",
    "curve",
    "generalization_error",
    "recovery_bound",
    "state_evolution",
    "thresholds",
    "weak_recovery",
]
