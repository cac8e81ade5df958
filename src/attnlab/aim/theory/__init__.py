"""What is predicted of attention-indexed models as d grows: Bayes errors, thresholds, free entropy, generalisation."""

from attnlab.aim.theory.bayes import StateEvolution, error_parts, mmse, parametric_curve, state_evolution
from attnlab.aim.theory.deep import DeepEvolution, deep_state_evolution, deep_strength
from attnlab.aim.theory.free_entropy import free_entropy, log_energy_information, mutual_information, output_entropy
from attnlab.aim.theory.generalization import generalization_error
from attnlab.aim.theory.limits import (
    large_alpha_mmse,
    recovery_slope,
    recovery_threshold,
    scaled_alpha,
    small_width_mmse,
    weak_recovery_threshold,
)
from attnlab.aim.theory.output import channel_strength, measurements

# What the help of the command line sets beyond the required parameters.
EXAMPLES = {"error_parts.tied": "false"}

__all__ = [
    "DeepEvolution",
    "StateEvolution",
    "channel_strength",
    "deep_state_evolution",
    "deep_strength",
    "error_parts",
    "free_entropy",
    "generalization_error",
    "large_alpha_mmse",
    "log_energy_information",
    "measurements",
    "mmse",
    "mutual_information",
    "output_entropy",
    "parametric_curve",
    "recovery_slope",
    "recovery_threshold",
    "scaled_alpha",
    "small_width_mmse",
    "state_evolution",
    "weak_recovery_threshold",
]
