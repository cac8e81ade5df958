import os
import subprocess
import sys

import pytest

# A second device of the host stands for the GPU; what runs says where its results are.
SECOND = """
import jax
import numpy as np

from attnlab.common.compute import Compute
from attnlab.rfa import AttentionKernelRidge, RandomFeatureAttention, Task, accelerator, kernels

host, second = jax.devices()
visible, places = jax.devices, {}
jax.devices = lambda platform=None: [second] if platform == "gpu" else visible(platform)


def watch(module, name):
    function = getattr(module, name)

    def watched(*arguments, **options):
        result = function(*arguments, **options)
        places.setdefault(name, set()).update(result.devices())
        return result

    setattr(module, name, watched)


X, y = Task("key_power", p=2, d=4, n_keys=3).sample(150, seed=0)
LEARNERS = {
    "kernel": (AttentionKernelRidge("brfa", ridge=1e-3), {"_tile", "_cholesky_solve"}),
    "heads": (RandomFeatureAttention(40, ridge=1e-3, random_state=0), {"_features", "_add_gram", "_cholesky_solve"}),
}
learner, steps = LEARNERS[NAME]
for module, name in [(kernels, "_tile")] + [(accelerator, n) for n in ("_features", "_add_gram", "_cholesky_solve")]:
    watch(module, name)
expected = learner.fit(X[:100], y[:100]).predict(X[100:])
nested = learner.predict_path(X[:100], y[:100], X[100:], [50, 100])
places.clear()
there = learner.set_params(compute=Compute(device="gpu")).fit(X[:100], y[:100]).predict(X[100:])
path = learner.predict_path(X[:100], y[:100], X[100:], [50, 100])
assert places == {step: {second} for step in steps}, places
print(abs(there - expected).max() / y.std(), abs(path - nested).max() / y.std(), X.dtype, there.dtype)
"""


@pytest.mark.parametrize("learner", ["kernel", "heads"])
def test_compute_moves_the_work_to_another_device(learner):
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    code = f"NAME = {learner!r}\n" + SECOND
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, **flags}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    fitted, path, *dtypes = done.stdout.split()
    # float32 kernels and features on both sides, at a ridge above their rounding
    assert max(float(fitted), float(path)) < 1e-4
    assert dtypes == ["float64", "float64"]
