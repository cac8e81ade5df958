"""
Your own model in ten minutes
=============================

We see only how *sharp* an attention row is, its entropy with a little noise, not where it looks. From how many
sequences can the hidden direction be learned? Nobody has solved this model; the link below is all that attnlab needs.
"""

import csv

import jax
import matplotlib.pyplot as plt
import numpy as np

from attnlab import smi

NOISE = 0.05


def entropy(z):
    """Entropy of the second row of softmax(z z^T); a row of two tokens is a logistic function of one difference."""
    gap = z[1, 0] * (z[1, 0] - z[0, 0])
    return jax.nn.sigmoid(gap) * jax.nn.softplus(-gap) + jax.nn.sigmoid(-gap) * jax.nn.softplus(gap)


link = smi.Link(
    tokens=2,
    rank=1,
    noise=1,
    sample=lambda z, e: entropy(z) + NOISE * e[0],
    log_density=lambda y, z: -0.5 * ((y - entropy(z)) / NOISE) ** 2,
    mean=entropy,
    symmetry="sign",
)

# %%
# Theory: the threshold, and the overlap that is reached at each sample complexity.
threshold = smi.theory.weak_recovery(link, draws=2**9)
overlaps = np.linspace(0.05, 0.9, 7)
alpha = smi.theory.curve(link, overlaps, draws=2**9)
print("threshold:", threshold, " exact bound:", smi.theory.recovery_bound(link))

# %%
# Message passing on data of this model, on top of the curve.
sizes, found = [0.9, 1.3, 2.0], []
for size in sizes:
    task = smi.Task(link, d=200, seed=1)
    model = smi.AMP(link, damping=0.6, random_state=2).fit(*task.sample(task.n_samples(size), seed=3))
    found.append(smi.align(model.W_, task.W, link.symmetry).cos2[0])

fig, ax = plt.subplots()
ax.plot(np.r_[0, threshold, alpha], np.r_[0, 0, overlaps], label="theory")
ax.plot(sizes, found, "o", label="AMP, d = 200")
ax.set(xlabel="sequences per dimension n/d", ylabel="overlap with the hidden direction")
ax.legend()

# %%
# The table for a paper. Now change NOISE, or let the entropy be that of three tokens.
with open("own_model.csv", "w", newline="") as file:
    csv.writer(file).writerows([["alpha", "error", "overlap"], *zip(alpha, alpha.error, overlaps, strict=True)])
