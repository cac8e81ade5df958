"""What is predicted of a link as d grows: overlaps, thresholds, transitions, errors."""

from attnlab.smi.theory.bayes import StateEvolution, state_evolution
from attnlab.smi.theory.bounds import counting_bound, recovery_bound
from attnlab.smi.theory.curve import Curve, curve
from attnlab.smi.theory.empirical_risk import EmpiricalRisk, erm_state_evolution
from attnlab.smi.theory.free_entropy import free_entropy
from attnlab.smi.theory.generalization import generalization_error
from attnlab.smi.theory.positional import PositionalSemantic, positional_semantic
from attnlab.smi.theory.thresholds import Step, Thresholds, thresholds, weak_recovery
from attnlab.smi.theory.transitions import Transitions, transitions

__all__ = [
    "Curve",
    "EmpiricalRisk",
    "PositionalSemantic",
    "StateEvolution",
    "Step",
    "Thresholds",
    "Transitions",
    "counting_bound",
    "curve",
    "erm_state_evolution",
    "free_entropy",
    "generalization_error",
    "positional_semantic",
    "recovery_bound",
    "state_evolution",
    "thresholds",
    "transitions",
    "weak_recovery",
]

# Values of required parameters in the examples of the command line.
EXAMPLES = {
    "link": "attention",
    "alpha": "0.4",
    "q": "[0.3,0.6]",
    "Q": "[[0.5]]",
    "transitions.link": "phase_retrieval",
    "positional_semantic.alpha": "2",
    "erm_state_evolution.alpha": "5",
}
