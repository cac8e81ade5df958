r"""What can be said about learning a layer before any data are seen.

=============  ====================================================================
symbol         meaning
=============  ====================================================================
m, d, k, o     heads, token width, tokens, output width
rho            head strength, ||Theta_i||_F
delta          precision of agreement, or probability that a certificate is wrong
s, tau         size of a parity, tolerance of a statistical query
sigma, n       label noise, number of examples
=============  ====================================================================

Functions of the law take the task first, or the parameters that build it: ``examples_needed(task)`` or
``examples_needed(n_heads=2, d=8, k=4)``.
"""

from attnlab.mha.theory.certificates import certificate_examples, certificate_width, tail_probability
from attnlab.mha.theory.counts import (
    distinct_rows,
    examples_needed,
    net_size,
    product_flops,
    query_count,
    step_flops,
    unknowns,
)
from attnlab.mha.theory.hardness import parity_trivial_error, sq_queries
from attnlab.mha.theory.layers import agreement_probability, cramer_rao, crude_sum_mean, logit_moments
from attnlab.mha.theory.learning import bayes_error, least_squares_error

__all__ = [
    "agreement_probability",
    "bayes_error",
    "certificate_examples",
    "certificate_width",
    "cramer_rao",
    "crude_sum_mean",
    "distinct_rows",
    "examples_needed",
    "least_squares_error",
    "logit_moments",
    "net_size",
    "parity_trivial_error",
    "product_flops",
    "query_count",
    "sq_queries",
    "step_flops",
    "tail_probability",
    "unknowns",
]

# Values that the help of ``attnlab theory`` shows; the tokens X of the examples have width 2.
EXAMPLES = {
    "cramer_rao.d": "2",
    "cramer_rao.k": "2",
    "cramer_rao.n_heads": "1",
    "delta": "0.1",
    "rows": "1000",
    "size": "3",
    "target": "0.01",
    "tau": "0.01",
    "X": "[[[1,-1],[1,1]],[[-1,1],[1,1]],[[1,1],[-1,-1]],[[-1,-1],[-1,1]],[[1,-1],[-1,1]],[[-1,1],[1,-1]]]",
}
