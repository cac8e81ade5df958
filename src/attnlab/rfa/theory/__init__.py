"""Predictions: complexities, spectra, learning curves and bounds of random-feature attention."""

from attnlab.rfa.theory.bounds import Witness as Witness
from attnlab.rfa.theory.bounds import excess_risk_bound as excess_risk_bound
from attnlab.rfa.theory.bounds import heads_bound as heads_bound
from attnlab.rfa.theory.bounds import heads_for_bound as heads_for_bound
from attnlab.rfa.theory.bounds import rademacher_ball as rademacher_ball
from attnlab.rfa.theory.bounds import rademacher_heads as rademacher_heads
from attnlab.rfa.theory.bounds import sample_size as sample_size
from attnlab.rfa.theory.bounds import witness as witness
from attnlab.rfa.theory.brfa import biased_trace_bound as biased_trace_bound
from attnlab.rfa.theory.brfa import dimension_free_cost as dimension_free_cost
from attnlab.rfa.theory.complexity import beta as beta
from attnlab.rfa.theory.complexity import beta_mlp as beta_mlp
from attnlab.rfa.theory.complexity import complexity as complexity
from attnlab.rfa.theory.complexity import complexity_approx as complexity_approx
from attnlab.rfa.theory.complexity import complexity_exact as complexity_exact
from attnlab.rfa.theory.complexity import complexity_sampled as complexity_sampled
from attnlab.rfa.theory.complexity import paper_coefficient as paper_coefficient
from attnlab.rfa.theory.complexity import witness_degree as witness_degree
from attnlab.rfa.theory.heads import heads_needed as heads_needed
from attnlab.rfa.theory.heads import interpolation_peak as interpolation_peak
from attnlab.rfa.theory.learning_curve import learning_curve as learning_curve
from attnlab.rfa.theory.sampled import sampled_learning_curve as sampled_learning_curve
from attnlab.rfa.theory.spectrum import Spectrum as Spectrum
from attnlab.rfa.theory.spectrum import attention_trace as attention_trace
from attnlab.rfa.theory.spectrum import mlp_eigenvalue as mlp_eigenvalue
from attnlab.rfa.theory.spectrum import mode_eigenvalue as mode_eigenvalue
from attnlab.rfa.theory.spectrum import pair_eigenvalue as pair_eigenvalue
from attnlab.rfa.theory.spectrum import spectrum as spectrum

# Values that the help of `attnlab theory` shows for required parameters.
EXAMPLES = {
    "eps": "0.5",
    "n_keys": "16",
    "a": "0",
    "b": "1",
    "degrees": "[0,2]",
    "model": "rfa",
    "r": "0",
    "radius": "2",
    "s": "2",
    "y": "[1,0.5]",
    "K": "[[1,0.2],[0.2,1]]",
    "features": "[[[1,0],[0,1]],[[0.5,0],[0,2]]]",
}
