"""The two cells of most figures: message passing on one data set, and state evolution beside it."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.common.figure import Params, Record
from attnlab.smi import theory
from attnlab.smi.alignment import align
from attnlab.smi.learners.amp import AMP
from attnlab.smi.task import Task

AMP_RUN, THEORY = "AMP", "state evolution"
MAX_ITER = 1000  # a direction above its threshold can grow slowly: one run of two layers at d = 300 took 439


def law(params: Params, seed: Any = 0) -> Task:
    """The task of a cell; theory does not depend on its d and seed."""
    return Task(params["link"], d=params.get("d", 1000), seed=seed)


def run(params: Params, seed: np.random.SeedSequence) -> Record:
    """Squared cosines and overlaps M of message passing, or Q of state evolution with its errors."""
    if params["source"] == THEORY:
        return predict(params)
    task = law(params, seed)
    X, y = task.sample(task.n_samples(params["alpha"]), seed)
    model = AMP(task.link, max_iter=MAX_ITER, random_state=seed).fit(X, y)
    found = align(model.W_, task.W, task.law.symmetry)
    columns = {f"cos2_{a + 1}": float(c) for a, c in enumerate(found.cos2)}
    return {**columns, "M": found.M, "V": model.V_, "n_iter": model.n_iter_, "converged": model.converged_}


def predict(params: Params) -> Record:
    """Q and its error at the law of the cell."""
    options = {"draws": params["draws"], "replicates": params["replicates"], "tol": 1e-4, "max_iter": 600}
    found = theory.state_evolution(law(params), params["alpha"], **options)
    columns = {f"q_{a + 1}": float(q) for a, q in enumerate(np.diagonal(found.Q))}
    columns |= {f"q_{a + 1}_error": float(q) for a, q in enumerate(np.diagonal(found.Q_error))}
    return {**columns, "Q": found.Q, "converged": bool(found.converged and found.resolved)}
