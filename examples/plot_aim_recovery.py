"""
When can an attention matrix be recovered exactly?
==================================================

Message passing on planted instances against the Bayes error computed without data: the error falls to zero at
``alpha = (2 rho - rho^2)/(T^2 + T - 2)``.
"""

import matplotlib.pyplot as plt
import numpy as np

from attnlab import aim

rho, d = 0.5, 50
alphas = [0.05, 0.1, 0.15, 0.22]
found = []
for alpha in alphas:
    task = aim.Task(d, tokens=2, rho=rho, seed=1)
    X, y = task.sample(task.n_samples(alpha), seed=2)
    model = aim.AMP(rho, tol=1e-6).fit(X, y, truth=task.S)
    found.append(model.trace_["mse"][-1])

curve = np.linspace(0, 0.25, 200)
plt.plot(curve, aim.theory.mmse(curve, rho), "k-", label="Bayes error")
plt.plot(alphas, found, "o", label=f"AMP, d = {d}")
plt.axvline(aim.theory.recovery_threshold(rho), color="gray", linestyle=":", label="recovery threshold")
plt.xlabel(r"samples $\alpha = n/d^2$")
plt.ylabel(r"estimation error $\|S - \hat S\|^2/d$")
plt.legend()
plt.show()

# %%
# One thing to change: three tokens (``tokens=3``, in the task and in both theory calls) need 2/5 of the samples.
