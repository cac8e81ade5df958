"""
How many examples?
==================

The planner finds the number of examples that each learner needs for a target error: from theory where there is one,
and by simulation, doubling and then bisecting, with an interval over seeds.
"""

import matplotlib.pyplot as plt

from attnlab import lab, rfa

task = rfa.Task(target="key_power", p=2, d=8, n_keys=8)
learners = [
    rfa.AttentionKernelRidge(),
    rfa.RandomFeatureAttention(n_heads=1000),
    rfa.RandomFeatureAttention(n_heads=1000, bias="identity"),
    rfa.RandomFeatureMLP(width=9000),
]
plan = lab.plan(task, error=0.1, learners=learners, n_max=1024, seeds=3)
for row in plan.rows():
    print(" | ".join(row))

# %%
# ``store="plan.sqlite"`` keeps the trials: stopped, the same call goes on; another target uses what is there.
figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
plan.draw(axes)
plt.show()
