"""
Denoising a matrix by its eigenvalues alone
===========================================

The posterior mean of a Wishart matrix under Gaussian noise keeps the eigenvectors and shrinks the eigenvalues by
``x - 2 noise Re g(x)``; the law of the noisy spectrum tells how.
"""

import matplotlib.pyplot as plt
import numpy as np

from attnlab import aim

noise, rho, d = 0.1, 0.3, 400
task = aim.Task(d, rho=rho, seed=0)
G = np.random.default_rng(1).standard_normal((d, d))
R = task.S + np.sqrt(noise) * (G + G.T) / np.sqrt(2 * d)
cleaned = aim.spectrum.rie(R, noise, rho)

x = np.linspace(-1.5, 5, 600)
fig, (left, right) = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
left.hist(np.linalg.eigvalsh(R), 60, density=True, alpha=0.5, label="noisy matrix")
left.plot(x, aim.spectrum.density(x, noise, rho), "k", label="predicted")
left.set(xlabel="eigenvalue", ylabel="density")
left.legend()
right.plot(np.linalg.eigvalsh(R), np.linalg.eigvalsh(cleaned), ".", label="shrunk")
right.axline((0, 0), slope=1, color="gray", linestyle=":")
right.set(xlabel="eigenvalue", ylabel="shrunken eigenvalue")
error = ((cleaned - task.S) ** 2).sum() / d
right.set_title(f"error {error:.4f}, predicted {aim.spectrum.denoising_mmse(noise, rho):.4f}")
plt.show()

# %%
# One thing to change: raise ``noise`` to 1 and watch the two bulks merge.
