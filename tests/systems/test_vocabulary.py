"""One word for one thing in the constructors of all learners, and few words."""

import inspect

import pytest

from attnlab.lab import registry

LEARNERS = {name: kind for name, kind in registry.learners().items() if not name.startswith("own.")}
LAWS = {name: kind for name, kind in registry.tasks().items() if not name.startswith("own.")}
# Other words for what has a name here.
SYNONYMS = {
    "noise_std": ("noise_var", "noise_level", "sigma", "epsilon"),
    "n_starts": ("n_inits", "n_init", "inits", "n_restarts", "restarts", "max_starts"),
    "n_steps": ("steps", "epochs", "n_epochs"),
    "step": ("learning_rate", "lr", "step_size", "eta0"),
    "max_iter": ("iterations", "n_iter", "n_iterations", "maxiter", "max_steps"),
    "tol": ("tolerance", "eps", "rtol", "ftol", "gtol"),
    "random_state": ("seed", "rng", "key"),
    "compute": ("dtype", "device", "devices", "precision", "memory", "memory_budget"),
}
MOST = 10


def names(kind):
    return list(inspect.signature(kind).parameters)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_constructor_has_ten_parameters_at_most(name):
    assert len(names(LEARNERS[name])) <= MOST


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_uses_the_common_words(name):
    others = {other: word for word, known in SYNONYMS.items() for other in known}
    assert {other: others[other] for other in names(LEARNERS[name]) if other in others} == {}


@pytest.mark.parametrize("name", LAWS)
def test_a_law_has_the_common_names(name):
    kind = LAWS[name]
    assert "d" in names(kind) or hasattr(kind, "d")
    assert hasattr(kind, "tokens") or "tokens" in names(kind)
    assert "random_state" not in names(kind)
