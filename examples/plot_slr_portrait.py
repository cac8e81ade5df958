"""
Phase portrait of single-location attention
===========================================

On the invariant manifold, training erf attention is a flow of two numbers: how well k has found the location
(kappa) and v the output (nu). All starts but a curve flow to one of two equivalent solutions.
"""

import matplotlib.pyplot as plt
import numpy as np

from attnlab.slr import theory

law = {"d": 400, "L": 10, "lam": 0.1, "gamma": 2**-0.5}
grid = np.linspace(-1, 1, 101)
kappa, nu = np.meshgrid(grid, grid)
overlaps = np.stack([kappa, nu, *np.zeros((3, *kappa.shape))], axis=-1)

# the exact gradient flow and the exact risk, everywhere in the square
flow = theory.velocity(overlaps, **law)
risk = theory.manifold_risk(kappa, nu, **law)

# gradient descent from thirty random starts on the manifold
start = theory.initial_overlaps(400, 30, start="manifold", seed=1)
path = theory.gradient_descent(start, **law, step=4e-3, n_steps=20_000, log_every=50)

figure, axes = plt.subplots(figsize=(6, 5), layout="constrained")
shade = axes.contourf(grid, grid, risk, levels=30, cmap="Blues")
figure.colorbar(shade, label="risk")
axes.streamplot(grid, grid, flow[..., 0], flow[..., 1], color="white", linewidth=0.6, density=1.2)
axes.plot(path[:, :, 0], path[:, :, 1], color="#D55E00", linewidth=0.9)
axes.plot([1, -1], [1, -1], "o", color="#009E73", clip_on=False, label="minima")
axes.plot([0], [0], "s", color="#E69F00", label="saddle")
axes.set(xlabel=r"$\kappa = k \cdot k^*$", ylabel=r"$\nu = v \cdot v^*$", xlim=(-1, 1), ylim=(-1, 1))
axes.legend(loc="upper left")

print(f"{np.mean(path[-1, :, 0] * path[-1, :, 1] > 0.8):.0%} of the runs found the planted pair")

# %%
# Change ``lam`` to 0.5: the minimum becomes so flat in kappa that runs reach nu = 1 and then creep.
plt.show()
