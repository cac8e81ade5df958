"""The task of a cell, from its parameters: what a figure runs and the theory it draws come from the same one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from attnlab.slr.task import Task

LAW = ("d", "L", "gamma", "nu", "noise_std", "locations")


def task_of(params: Mapping[str, Any], seed: np.random.SeedSequence | None = None, **changes: Any) -> Task:
    """The law of a cell or a row; ``seed`` plants the truth. Where no d is set, the theory does not depend on it."""
    law = {"d": 2} | {name: params[name] for name in LAW if name in params} | changes
    return Task(**law, seed=0 if seed is None else int(seed.generate_state(1)[0]))
