"""The toy learners are those of a system, in every test of this folder."""

import types

import numpy as np
import pytest
from toy_learners import Certificate, Mean, Mutable, Picky, Private, function

from attnlab.persist import grammar


@pytest.fixture(autouse=True)
def toy_system(monkeypatch):
    """The system ``slr`` replaced by a toy one, whose learners are the toys."""
    system = types.ModuleType("attnlab.slr")
    system.__all__ = ["Mean", "Certificate", "Picky", "Mutable", "function", "theory", "rng"]
    for item in (Mean, Private, Certificate, Picky, Mutable, function):
        monkeypatch.setattr(item, "__module__", "attnlab.slr.learners")
        setattr(system, item.__name__, item)
    system.theory, system.rng = types.ModuleType("theory"), np.random.default_rng(0)
    monkeypatch.setattr(grammar.registry, "system", lambda name: {"slr": system}[name])
