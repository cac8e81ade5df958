"""
Why a temperature schedule helps
================================

From random starts two directions race: the right one and one in which k and v have swapped roles. The right one wins
the race only at large lambda, where its minimum is unstable; lowering lambda during training has the best of both.
"""

import matplotlib.pyplot as plt
import numpy as np

from attnlab.slr import theory

law = {"d": 400, "L": 10, "gamma": 2**-0.5}
start = theory.initial_overlaps(400, 100, seed=0)
runs = {
    "small, fixed": {"lam": 0.1, "step": 4e-3, "n_steps": 40_000},
    "large, fixed": {"lam": 0.9, "step": 2e-3, "n_steps": 40_000},
    "from 1, decaying": {"lam": 1.0, "decay": 1e-4, "step": 4e-3, "n_steps": 120_000},
}

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for (name, options), color in zip(runs.items(), ["#0072B2", "#D55E00", "#009E73"], strict=True):
    path = theory.gradient_descent(start, **law, **options, log_every=400, check_step=False)
    found = (np.abs(path[:, :, 1]) > 0.9) & (np.abs(path[:, :, 0]) > 0.9) & (path[:, :, 0] * path[:, :, 1] > 0)
    left.plot(np.arange(len(path)) * 0.4, found.mean(axis=1), color=color, label=f"{name}: {found[-1].mean():.0%}")
left.set(xlabel="step / 1000", ylabel="share of runs at the planted pair", ylim=(-0.02, 1.02))
left.legend(title=r"$\lambda$")

lams = np.geomspace(0.03, 2, 80)
rates = [theory.saddle_exponents(d=400, lam=lam) for lam in lams]
right.plot(lams, [r.manifold for r in rates], color="#009E73", label="right direction")
right.plot(lams, [r.swapped for r in rates], color="#D55E00", label="swapped direction")
right.axvline(theory.instability_threshold(d=400).value, color="k", linestyle=":", label="planted pair unstable above")
right.set(xscale="log", xlabel=r"$\lambda$", ylabel="growth rate at the start")
right.legend()

# %%
# Add ``"penalty_mean": 10.0`` to the first run: small lambda then succeeds from almost every start.
plt.show()
