"""
Two phase diagrams
==================

Left: with how many samples does message passing recover an attention matrix of width rho? Right: for which
temperatures does gradient descent return to the planted pair of single-location regression? Squares whose corners
disagree are divided, so most runs are near the transition; the lines are what theory predicts.
"""

import matplotlib.pyplot as plt
import numpy as np

from attnlab import aim, lab, slr


def returns(params, seed):
    """Start near the planted pair and see whether what is off it (theta, eta, rho) grows."""
    start = np.r_[0.95, 0.95, 0.02 * np.random.default_rng(seed).standard_normal(3)]
    law = {"d": params["d"], "L": 10, "lam": params["lam"]}
    step = 0.3 * slr.theory.step_size_limit(**law)
    path = slr.theory.gradient_descent(start, **law, step=step, n_steps=6_000, log_every=3_000, check_step=False)
    early, late = np.linalg.norm(path[1:, 0, 2:], axis=-1)
    return {"growth": late / max(early, 1e-12)}


recovery = lab.phase_diagram(
    lab.Axis("task.rho", 0.2, 1.1, label=r"width $\rho$"),
    lab.Axis("alpha", 0.04, 0.36, label=r"samples $\alpha = n/d^2$"),
    task="aim.Task",
    learner="aim.AMP",
    set={"task.d": 24, "n_test": 200},
    success=("relative_error", lab.at_most(0.01)),
    lines={"recovery threshold": lambda rho: aim.theory.recovery_threshold(rho)},
    start=(2, 4),
    depth=1,
    seeds=3,
)
stability = lab.phase_diagram(
    lab.Axis("d", 20, 640, log=True, whole=True, label="dimension d"),
    lab.Axis("lam", 0.5, 2.5, label=r"inverse temperature $\lambda$"),
    cell=returns,
    success=("growth", lab.at_most(1.0)),
    lines={"instability": lambda d: slr.theory.instability_threshold(d=round(d), L=10).value},
    start=(2, 4),
    depth=2,
    seeds=3,
)
print(f"{len(recovery.points)} and {len(stability.points)} points")

# %%
# ``store="phases.sqlite"`` keeps the runs: a diagram that was stopped goes on, and a deeper one begins where it ended.
figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for diagram, place in zip((recovery, stability), axes, strict=True):
    diagram.draw(place)
plt.show()
