"""The theory of the page is that of Python, and its points are the stored layers."""

import json
import shutil
import subprocess
from importlib import resources

import numpy as np
import pytest
from attnlab_icl import explorer, theory


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_script_computes_the_same_errors(tmp_path):
    rng = np.random.default_rng(3)
    calls = [
        [*np.exp(rng.uniform(-2, 3, 3)), rng.uniform(0, 0.5), ridge] for ridge in (0.0, 1e-5, 0.1) for _ in range(20)
    ]
    script = (resources.files("attnlab_icl.explorer") / "theory.js").read_text()
    program = tmp_path / "ask.js"
    program.write_text(
        f"const attnlab = {{ views: {{}} }};\n{script}\n"
        f"console.log(JSON.stringify({json.dumps(calls)}.map((call) => attnlab.iclTheory.errors(...call))));"
    )
    found = json.loads(subprocess.run(["node", program], capture_output=True, text=True, check=True).stdout)
    expected = theory.errors(*np.array(calls).T).detail
    for here, there in (("icl", "icl"), ("idg", "idg"), ("g", "g_task")):
        np.testing.assert_allclose([row[here] for row in found], expected[there], rtol=1e-9, atol=1e-12)


class Stored:
    def of(self, *figures):
        setting = {"alpha": 1, "kappa": 0.5, "tau": 2.0, "rho": 0.01, "ridge": 1e-5, "d": 32}
        return [{**setting, "seed": s, "icl": 1.0 + s, "idg": 0.5} for s in range(2)] + [{**setting, "kappa": None}]


def test_stored_layers_are_averaged_over_replicates():
    (point,) = explorer.points(Stored())["layers"]
    assert (point["icl"], point["idg"], point["idg_sem"]) == (1.5, 0.5, 0.0)
    assert point["icl_sem"] == pytest.approx(0.5)
