"""What is predicted about single-location regression: risks, training dynamics, landscape, state evolution."""

from attnlab.slr.initial import initial_overlaps as initial_overlaps
from attnlab.slr.theory.advantage import attention_risk as attention_risk
from attnlab.slr.theory.advantage import bayes_attention_risk as bayes_attention_risk
from attnlab.slr.theory.advantage import linear_attention_risk as linear_attention_risk
from attnlab.slr.theory.bayes_optimal import bayes_fixed_points as bayes_fixed_points
from attnlab.slr.theory.bayes_optimal import bayes_state_evolution as bayes_state_evolution
from attnlab.slr.theory.bayes_optimal import hard_phase as hard_phase
from attnlab.slr.theory.dynamics import gradient_descent as gradient_descent
from attnlab.slr.theory.dynamics import gradient_flow as gradient_flow
from attnlab.slr.theory.dynamics import velocity as velocity
from attnlab.slr.theory.erm import erm_state_evolution as erm_state_evolution
from attnlab.slr.theory.landscape import SaddleExponents as SaddleExponents
from attnlab.slr.theory.landscape import SwappedMinimum as SwappedMinimum
from attnlab.slr.theory.landscape import escape_steps as escape_steps
from attnlab.slr.theory.landscape import flow_jacobian as flow_jacobian
from attnlab.slr.theory.landscape import instability_threshold as instability_threshold
from attnlab.slr.theory.landscape import manifold_minimum as manifold_minimum
from attnlab.slr.theory.landscape import saddle_exponents as saddle_exponents
from attnlab.slr.theory.landscape import step_size_limit as step_size_limit
from attnlab.slr.theory.landscape import swapped_minimum as swapped_minimum
from attnlab.slr.theory.landscape import transverse_exponent as transverse_exponent
from attnlab.slr.theory.linear import linear_learning_curve as linear_learning_curve
from attnlab.slr.theory.population import bayes_risk as bayes_risk
from attnlab.slr.theory.population import best_temperature as best_temperature
from attnlab.slr.theory.population import linear_risk as linear_risk
from attnlab.slr.theory.population import manifold_risk as manifold_risk
from attnlab.slr.theory.population import null_risk as null_risk
from attnlab.slr.theory.population import oracle_risk as oracle_risk
from attnlab.slr.theory.population import risk as risk
from attnlab.slr.theory.population import risk_gradient as risk_gradient
from attnlab.slr.theory.reading import location_accuracy as location_accuracy
from attnlab.slr.theory.reading import reading_accuracy as reading_accuracy

# What the examples of the command line set.
EXAMPLES = {
    "activation": "softmax",
    "margin": "3",
    "bayes_state_evolution.noise_std": "0.1",
    "bayes_fixed_points.noise_std": "0.1",
    "hard_phase.noise_std": "0.01",
    "erm_state_evolution.noise_std": "0.1",
    "lam": "0.1",
    "n_steps": "100",
    "overlaps": "[0.05,0.05,0,0,0]",
    "step": "0.004",
    "L": "3",
    "times": "[0,1,2]",
    "bayes_state_evolution.alpha": "1",
    "bayes_fixed_points.alpha": "1",
    "erm_state_evolution.alpha": "5",
    "risk.nu": "1",
    "risk_gradient.nu": "1",
    "manifold_risk.nu": "1",
    "runs": "4",
    "hard_phase.nu": "1",
}
