"""
A convex body that shrinks around the heads
===========================================

Rows on which all heads agree cut out a convex body that contains every attention matrix. Across the affine hull of the
heads it is thin, along the hull it stays long: with two heads one axis stands out, before any non-convex step is taken.
"""

import matplotlib.pyplot as plt
import numpy as np

from attnlab import mha

task = mha.Task(d=8, k=2, n_heads=2, rho=2.0)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")

for n in (2_000, 8_000, 32_000):
    learner = mha.SculptingLearner(2, random_state=0).fit(*task.sample(n, seed=1))
    error = mha.span_error(learner.span_, task.Theta)
    lengths = 1 / np.sqrt(learner.curvatures_[:12])
    left.semilogy(range(1, 13), lengths, "o-", label=f"n = {n}, span error {error:.3f}")
    trimming = learner.steps_[1].arrays
    right.loglog(trimming["rows_in_play"], trimming["scales"], "o-", label=f"n = {n}")

left.set(xlabel="axis of the body", ylabel="length, 1/√curvature", title="one long axis: the line through both heads")
right.set(xlabel="rows in play", ylabel="residual scale", title="agreeing rows are found by tightening")
left.legend()
right.legend()

print("recovered exactly:", mha.align(learner.theta_, learner.w_, task.Theta, task.W).theta_error < 1e-8)
for step in learner.steps_:
    print(f"{step.name:32s} {step.seconds:6.2f} s  {step.summary}")

# %%
# One thing to change: ``n_heads=3`` in both places, with ``rho=1.0`` and n up to 100000. Two axes stand out.
plt.show()
