"""A store of made-up results in the form of the real ones, the page built from it, and a browser that shows it."""

import dataclasses

import numpy as np
import pytest
from browser import chromium

from attnlab.explore.page import explorer
from attnlab.lab import registry
from attnlab.lab.outcome import Outcome, answer
from attnlab.lab.store import Store


def amp(params, seed):
    return {"mse": 0.4 + 0.02 * params["seed"]}


def descent(params, seed):
    return amp(params, seed) if params["learner"] == "amp" else {"single": 0.8, "averaged": 0.5}


def spectrum(params, seed):
    return {"found": np.linspace(0, 3, 8), "truth": np.zeros(8)}


def portrait(params, seed):
    path = np.zeros((20, 30, 2), dtype=np.float32)
    return {"path": path, "rows": [{"start": i, "arrived": True} for i in range(30)]}


def training(params, seed):
    rows = [{"run": i, "risk": 0.1, "end": "oracle" if i else "other"} for i in range(params["runs"])]
    return {"rows": rows}


def learning(params, seed):
    sizes = [params["n"]] if "n" in params else [64, 128, 256]
    return {"rows": [{"target": "f1_p2", "n": n, "error": 1 + 0.1 * params["seed"]} for n in sizes]}


def success(params, seed):
    return {"success": params["seed"] % 2 == 0}


def overlap(params, seed):
    return {"cos2_1": 0.5 + 0.1 * params["seed"]} if params["source"] == "AMP" else {"it": 1.0}


RUNS = {
    **dict.fromkeys(("aim.softmax", "aim.hardmax", "aim.phase_diagram"), amp),
    "aim.gradient_descent": descent,
    "aim.spectra": spectrum,
    "slr.portrait": portrait,
    **dict.fromkeys(("slr.manifold", "slr.small"), training),
    **dict.fromkeys(("rfa.keys", "rfa.heads", "rfa.bias-scale"), learning),
    **dict.fromkeys(("mha.samples", "mha.sizes", "mha.recovery"), success),
    "smi.phase_retrieval": overlap,
}


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "results.sqlite"
    with Store(path, writable=True) as opened:
        for figure in registry.select(RUNS):
            for cell in figure.changed("quick", {"seeds": 2}).cells("quick"):
                made_up = dataclasses.replace(cell, run=RUNS[figure.name])
                opened.put(Outcome(cell, answer(made_up)))
    return path


@pytest.fixture(scope="session")
def page(store, tmp_path_factory):
    path, _ = explorer(tmp_path_factory.mktemp("explorer") / "explorer.html", store)
    return path


@pytest.fixture(scope="session")
def empty_page(tmp_path_factory):
    path, points = explorer(tmp_path_factory.mktemp("explorer") / "empty.html")
    assert points == 0
    return path


@pytest.fixture(scope="module")
def browser(page, tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("browser")) as opened:
        opened.get(page.as_uri())
        yield opened
