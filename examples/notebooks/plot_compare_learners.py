"""
Notebook 3: learners on equal data
==================================

Each learner gets the same examples of a task; the Bayes error stands beside. Add an estimator of your own to the list.
"""

# %%
# The arena, with progress on the way.

from attnlab import lab

comparison = lab.arena(["slr.spiked"], ["RFA", "softmax", "linear"], n=[60, 240], seeds=2)
comparison

# %%
# One number of it: mean error over the seeds and its 95 % interval, relative to predicting the mean.

comparison.error("slr.spiked", "softmax")

# %%
# Learning curves.

comparison.curves()
