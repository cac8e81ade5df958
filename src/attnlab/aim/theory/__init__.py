"""What is predicted of attention-indexed models as d grows: Bayes errors, thresholds, free entropy, generalisation."""

from attnlab.aim.theory.bayes import StateEvolution, error_parts, mmse, parametric_curve, state_evolution
from attnlab.aim.theory.deep import DeepEvolution, deep_state_evolution, deep_strength
from attnlab.aim.theory.deep_layers import deep_recovery_threshold, deep_weak_recovery_threshold, layer_strengths
from attnlab.aim.theory.erm import ERM, erm, erm_interpolation_threshold, erm_recovery_threshold
from attnlab.aim.theory.erm import erm_density as erm_density  # of a result, so that no command line can call it
from attnlab.aim.theory.free_entropy import free_entropy, log_energy_information, mutual_information, output_entropy
from attnlab.aim.theory.generalization import generalization_error
from attnlab.aim.theory.learning_flow import (
    LearningFlow,
    escape_rate,
    matrix_flow,
    potential,
    sgd_flow,
    weak_recovery_time,
)
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
EXAMPLES = {
    "error_parts.tied": "false",
    "erm_interpolation_threshold.noise": "0.25",
    "times": "[0.0,1.0,2.0]",
    "level": "0.5",
    "q11": "1.0",
    "q12": "1.0",
    "q22": "1.5",
    "S0": "[[1.0,0.0],[0.0,0.5]]",
    "S2": "[[1.0,0.2],[0.2,1.0]]",
    "alpha": "0.1",
    "error": "0.4",
    "noise": "0.6",
    "V": "0.6",
    "noise_levels": "[0.3,0.6,1.0]",
    "q": "0.5",
    "q_hat": "1.0",
    "ratio": "0.375",
    "x": "0.5",
    "R": "[[1,0.2],[0.2,0.5]]",
    "V1": "0.8",
    "V2": "0.6",
    "cubed_density.noise": "[0.6]",
    "t": "0.5",
}

__all__ = [
    "ERM",
    "DeepEvolution",
    "LearningFlow",
    "StateEvolution",
    "channel_strength",
    "deep_recovery_threshold",
    "deep_state_evolution",
    "deep_strength",
    "deep_weak_recovery_threshold",
    "erm",
    "erm_interpolation_threshold",
    "erm_recovery_threshold",
    "error_parts",
    "escape_rate",
    "free_entropy",
    "generalization_error",
    "large_alpha_mmse",
    "layer_strengths",
    "log_energy_information",
    "matrix_flow",
    "measurements",
    "mmse",
    "mutual_information",
    "output_entropy",
    "parametric_curve",
    "potential",
    "recovery_slope",
    "recovery_threshold",
    "scaled_alpha",
    "sgd_flow",
    "small_width_mmse",
    "state_evolution",
    "weak_recovery_threshold",
    "weak_recovery_time",
]
