"""
Attention against a network on concatenated tokens
==================================================

Averages of a quadratic function of the keys are learned by random attention heads from a few hundred examples; a
random-feature network on the concatenated tokens needs far more. The lines are predictions without a fitted constant:
for the heads and units that were fitted, and for infinitely many (thin).
"""

import matplotlib.pyplot as plt
import numpy as np

from attnlab import rfa

task = rfa.Task(target="key_power", p=2, d=10, n_keys=10)
sizes = [50, 100, 200, 400, 800]
learners = {
    "rfa": (rfa.RandomFeatureAttention, {"n_heads": 400}),
    "rfmlp": (rfa.RandomFeatureMLP, {"width": 4400}),
}

X, y = task.sample(max(sizes) + 1000, seed=1)
X_test, y_test = X[max(sizes) :], y[max(sizes) :]
fine = np.geomspace(sizes[0], sizes[-1], 40)
for (name, (make, size)), color in zip(learners.items(), ("C0", "C1"), strict=True):
    learner = make(**size, random_state=0)
    errors = [np.mean((learner.fit(X[:n], y[:n]).predict(X_test) - y_test) ** 2) / task.variance for n in sizes]
    plt.plot(sizes, errors, "o", color=color, label=f"{name}, one run")
    plt.plot(fine, rfa.theory.learning_curve(task, fine, model=name, **size), color=color, label=f"{name}, theory")
    plt.plot(fine, rfa.theory.learning_curve(task, fine, model=name), color=color, linewidth=0.5)
plt.xscale("log")
plt.yscale("log")
plt.xticks(sizes, sizes)
plt.minorticks_off()
plt.xlabel("samples $n$")
plt.ylabel("error / Var $f_*$")
plt.legend()
plt.show()

# %%
# One thing to change: ``p=3``. The cubic harmonic is out of reach of both models at these sizes.
