"""
Notebook 1: from data to a comparison with theory
=================================================

One token of a sequence decides the output. Sample data, fit two learners, and put theory beside the measured errors.
"""

# %%
# A task generates data and holds the planted truth.

from attnlab import slr

task = slr.Task(d=40, L=5, gamma=1.0, nu=20.0, noise_std=0.1, seed=0)
X, y = task.sample(2000, seed=1)
X_test, y_test = task.sample(4000, seed=2)
task

# %%
# A learner is a scikit-learn estimator.

learners = {"linear": slr.LinearPredictor(), "softmax": slr.SoftmaxAttention(random_state=0)}
errors = {name: float(((learner.fit(X, y).predict(X_test) - y_test) ** 2).mean()) for name, learner in learners.items()}
errors

# %%
# Theory: a number with its error, its status and whether it converged.

limits = {"linear": slr.theory.linear_risk(task), "softmax": slr.theory.attention_risk(task, "softmax")}
limits

# %%
# Both in one picture: bars are measured, black lines are the best that each form of predictor can reach.

import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(4, 3))
axes.bar(list(errors), list(errors.values()), width=0.5)
axes.hlines(
    [float(limits[name]) for name in errors], [-0.3, 0.7], [0.3, 1.3], color="black", label="theory, best of its form"
)
axes.set(ylabel="mean squared test error")
axes.legend()
plt.show()
