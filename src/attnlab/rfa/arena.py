"""What this system brings to the arena: three targets, and random-feature attention with its controls.

Ridges are chosen by leave-one-out on the training examples, which is exact and cheap for ridge regression.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.pipeline import make_pipeline

from attnlab.common.adapters import PrependQuery, ScaleTokens
from attnlab.common.arena import Declined, Entry, Forms, query
from attnlab.common.compute import Compute
from attnlab.rfa.learners import (
    AttentionKernelRidge,
    PatchRandomFeatures,
    RandomFeatureAttention,
    RandomFeatureMLP,
    RandomFeatureSelfAttention,
)
from attnlab.rfa.task import Task

HEADS = 300
# More rows than this make leave-one-out on self-attention a matter of minutes.
MOST_ROWS = 2100
# Ridges down to 1e-8 need kernels in double precision.
RIDGE: Mapping[str, Any] = {"ridge": (1e-8, 1e-6, 1e-4, 1e-2, 1.0), "compute": Compute(dtype="float64")}

_SIZES = {"d": 16, "n_keys": 8}
_MORE_KEYS = {"n_keys": 16}
TASKS = {
    "rfa.key_power": Entry(Task, {"target": "key_power", "p": 2, **_SIZES}, _MORE_KEYS),
    "rfa.corr_power": Entry(Task, {"target": "corr_power", "q": 1, **_SIZES}, _MORE_KEYS),
    "rfa.softmax": Entry(Task, {"target": "softmax", **_SIZES}, _MORE_KEYS),
}


def _with_query(task: Any, model: Any, own: str = "zero") -> Any:
    """Learners of rfa take their own tasks as they are; other tokens are scaled to norm 1 and get a query."""
    if query(task) == "given":
        return model
    return make_pipeline(ScaleTokens(), PrependQuery("first" if query(task) == "first" else own), model)


def _rfa(task: Any, n: int) -> Any:
    return _with_query(task, RandomFeatureAttention(n_heads=HEADS, **RIDGE))


def _brfa(task: Any, n: int) -> Any:
    # With a query of zeros the bias of W would do nothing.
    return _with_query(task, RandomFeatureAttention(n_heads=HEADS, bias="identity", **RIDGE), "mean")


def _rfa_layer(task: Any, n: int, **options: Any) -> Any:
    if n * task.tokens > MOST_ROWS:
        raise Declined(f"over {MOST_ROWS} rows")
    return make_pipeline(ScaleTokens(), RandomFeatureSelfAttention(n_heads=HEADS, **RIDGE, **options))


def _brfa_layer(task: Any, n: int) -> Any:
    return _rfa_layer(task, n, bias="identity")


def _kernel(task: Any, n: int) -> Any:
    return _with_query(task, AttentionKernelRidge(kernel="rfa", **RIDGE))


def _rfmlp(task: Any, n: int) -> Any:
    # As many trained numbers as the heads have, d + 1 each. All tokens are concatenated: no query is needed.
    model = RandomFeatureMLP(width=HEADS * (task.d + 1), **RIDGE)
    return model if query(task) == "given" else make_pipeline(ScaleTokens(), model)


def _patch(task: Any, n: int) -> Any:
    return _with_query(task, PatchRandomFeatures(width=HEADS * (task.d + 1), **RIDGE))


LEARNERS = {
    "RFA": Forms(_rfa, _rfa_layer),
    "BRFA": Forms(_brfa, _brfa_layer),
    "kernel": Forms(_kernel),
    "RFMLP": Forms(_rfmlp),
    "patch": Forms(_patch),
}
