"""
Theory and simulation in four systems
=====================================

Each panel sets theory (lines) beside what an algorithm does with data (points): attention finds the deciding token,
random heads learn at the predicted rate, message passing reaches the Bayes error, and a planted layer is recovered.
"""

import matplotlib.pyplot as plt
import numpy as np

from attnlab import aim, mha, rfa, slr
from attnlab.common.drawing import COLORS, line

figure, (one, two, three, four) = plt.subplots(1, 4, figsize=(12.4, 3), layout="constrained")

start = slr.theory.initial_overlaps(400, 12, start="manifold", seed=0)
path = slr.theory.gradient_descent(start, d=400, L=10, lam=0.1, step=4e-3, n_steps=4000, log_every=40)
steps = 40 * np.arange(len(path))
one.plot(steps, np.abs(path[:, :, 0]), color=COLORS[0], linewidth=0.8, alpha=0.7)
one.plot(steps, np.abs(path[:, :, 1]), color=COLORS[1], linewidth=0.8, alpha=0.7)
one.set(title="slr: the location is found", xlabel="step", ylabel=r"overlaps $|\kappa|$ (blue), $|\nu|$ (orange)")

task, sizes = rfa.Task(target="key_power", p=2), [64, 128, 256, 512, 1024]
X, y = task.sample(2024, seed=0)
for model, make, size, color in (
    ("rfa", rfa.RandomFeatureAttention, {"n_heads": 300}, COLORS[0]),
    ("rfmlp", rfa.RandomFeatureMLP, {"width": 5100}, COLORS[1]),
):
    learner = make(**size, random_state=0)
    errors = [np.mean((learner.fit(X[:n], y[:n]).predict(X[1024:]) - y[1024:]) ** 2) / task.variance for n in sizes]
    two.loglog(sizes, errors, "o", color=color, label=model.upper())
    line(two, sizes, rfa.theory.learning_curve(task, sizes, model=model, **size).value, color=color)
two.set(title="rfa: learning curves", xlabel="samples n", ylabel=r"error / Var $f_*$")
two.legend()

alpha = np.linspace(0.005, 0.25, 100)
for rho, color in ((0.2, COLORS[1]), (0.5, COLORS[0]), (2.0, COLORS[2])):
    line(three, alpha, aim.theory.mmse(alpha, rho), color=color, label=rf"$\rho = {rho:g}$")
for a in (0.05, 0.1, 0.15, 0.2):
    teacher = aim.Task(d=80, rho=0.5, seed=1)
    found = aim.AMP(0.5, tol=1e-4).fit(*teacher.sample(teacher.n_samples(a), seed=2))
    three.plot(a, np.sum((found.S_ - teacher.S) ** 2) / 80, "o", color=COLORS[0])
three.set(title="aim: Bayes error and AMP", xlabel=r"$\alpha = n/d^2$", ylabel="estimation error")
three.legend()

planted = mha.Task(d=8, k=4, n_heads=2, rho=4.0, seed=0)
layer = mha.learn(*planted.sample(600, seed=1), n_heads=2)
order = np.asarray(mha.align(layer.theta_, layer.w_, planted.Theta, planted.W).permutation)
four.plot(planted.Theta.ravel(), layer.theta_[order].ravel(), "o", markersize=3)
four.axline((0, 0), slope=1, color=COLORS[6], linewidth=0.8)
four.set(title="mha: a layer recovered", xlabel=r"planted $\Theta$", ylabel=r"found $\Theta$")

# %%
# Change ``rho`` in the third panel to 0.1: the threshold of exact recovery moves to (2 rho - rho^2) / 4.
plt.show()
