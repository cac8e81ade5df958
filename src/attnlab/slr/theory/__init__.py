"""What is predicted about single-location regression: risks, training dynamics, landscape, state evolution."""

from attnlab.slr.initial import initial_overlaps as initial_overlaps
from attnlab.slr.theory.dynamics import gradient_descent as gradient_descent
from attnlab.slr.theory.dynamics import gradient_flow as gradient_flow
from attnlab.slr.theory.dynamics import velocity as velocity
from attnlab.slr.theory.population import bayes_risk as bayes_risk
from attnlab.slr.theory.population import best_temperature as best_temperature
from attnlab.slr.theory.population import linear_risk as linear_risk
from attnlab.slr.theory.population import manifold_risk as manifold_risk
from attnlab.slr.theory.population import null_risk as null_risk
from attnlab.slr.theory.population import oracle_risk as oracle_risk
from attnlab.slr.theory.population import risk as risk
from attnlab.slr.theory.population import risk_gradient as risk_gradient
