"""
A bias estimated from the data
==============================

The target correlates the query with *rotated* keys. A bias towards the identity does not help; the planted rotation
does, and a rotation estimated from the third moment of the same data recovers most of that gain.
"""

import matplotlib.pyplot as plt
import numpy as np

from attnlab import rfa

task = rfa.Task(target="mixed_rotation", gamma=0.0, d=10, n_keys=10)
sizes = [100, 200, 400, 800]
biases = {"no bias": None, "identity": "identity", "estimated": "moment", "planted rotation": task.rotation}

X, y = task.sample(max(sizes) + 1000, seed=1)
X_test, y_test = X[max(sizes) :], y[max(sizes) :]
for label, bias in biases.items():
    learner = rfa.RandomFeatureAttention(n_heads=400, bias=bias, random_state=0)
    errors = [np.mean((learner.fit(X[:n], y[:n]).predict(X_test) - y_test) ** 2) / task.variance for n in sizes]
    plt.plot(sizes, errors, "o-", label=label)
plt.xscale("log")
plt.xticks(sizes, sizes)
plt.minorticks_off()
plt.xlabel("samples $n$")
plt.ylabel("error / Var $f_*$")
plt.legend()
plt.show()

# %%
# One thing to change: ``gamma=1.0``, where the identity is the right bias.
