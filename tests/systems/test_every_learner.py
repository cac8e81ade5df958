"""Over all systems: truth, data and learners share no random numbers, and every fit says how it ended."""

import functools
import inspect
import warnings

import jax
import numpy as np
import pytest
from sklearn.exceptions import SkipTestWarning
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import check_estimator

from attnlab.common.compute import Compute
from attnlab.lab import registry
from attnlab.lab.describe import parameters
from attnlab.lab.request import spec

# What a task cannot be made without, by the names that the laws give it.
SIZES = {"d": 16, "L": 3, "k": 3, "n_heads": 2, "l": 8}
# A law without a list of pretraining tasks has no truth to share.
OPTIONS = {"icl.Task": {"k": 20}, "mha.Task": {"d": 6}, "slr.Task": {"noise_std": 0.1}}
# Small budgets: a fit need not be good here, and a short one remembers its start best.
BUDGET = {"max_iter": 3, "n_steps": 5, "n_starts": 1, "max_starts": 1, "n_heads": 20, "width": 50, "max_heads": 2}
# Learners whose task is not the first of their system.
FITTED_TO = {"aim.DeepAMP": "aim.DeepTask", "rfa.RandomFeatureSelfAttention": "mha.Task"}
SEED = 7
N = 150


def required(kind):
    options = inspect.signature(kind).parameters.values()
    return {option.name: SIZES[option.name] for option in options if option.default is option.empty}


@functools.cache
def task(name, seed):
    kind = registry.tasks()[name]
    return kind(**{"d": SIZES["d"], **required(kind), **OPTIONS.get(name, {}), "seed": seed})


def own_task(learner):
    return FITTED_TO.get(learner, f"{learner.split('.')[0]}.Task")


@functools.cache
def fitted(name):
    """The learner with the integer of the truths below, fitted to data of another truth."""
    return fitted_with(name, SEED)


def fitted_with(name, state, **machine):
    kind = registry.learners()[name]
    known = kind().get_params() if not required_of_learner(kind) else {}
    free = [key for key in BUDGET if isinstance(known.get(key), int) and key not in getattr(kind, "needs", ())]
    options = {f"learner.{key}": BUDGET[key] for key in free}
    law = task(own_task(name), SEED + 1)
    asked = spec({"task": law, "learner": name, "n_train": N, **options})
    learner = asked._informed(law)
    if "random_state" in learner.get_params():
        learner.set_params(random_state=state)
    learner.set_params(**machine)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return learner.fit(*law.sample(N, SEED + 2))


def required_of_learner(kind):
    return any(option.default is option.empty for option in inspect.signature(kind).parameters.values())


def arrays(item, names):
    """The numbers behind an object's arrays, where there are enough to speak of a correlation."""
    for name in names:
        value = getattr(item, name, None)
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.size >= 12:
            yield name, entries(value)


def entries(value):
    """A symmetric matrix has a diagonal of its own mean, and each other entry twice."""
    value = np.asarray(value, dtype=float)
    if value.ndim >= 2 and value.shape[-1] == value.shape[-2] and np.allclose(value, np.swapaxes(value, -1, -2)):
        rows, columns = np.triu_indices(value.shape[-1], 1)
        value = value[..., rows, columns]
    return value.ravel()


@functools.cache
def truths(name):
    """What the task has planted: arrays that another seed changes."""
    one, other = task(name, SEED), task(name, SEED + 1)
    public = [key for key in dir(type(one)) if not key.startswith("_") and key not in (parameters(one) or {})]
    found = dict(arrays(one, public))
    changed = dict(arrays(other, public))
    return {key: value for key, value in found.items() if not np.array_equal(value, changed[key])}


def correlated(one, other):
    """Whether the numbers agree more than independent ones: 4 standard errors."""
    size = min(len(one), len(other))
    a, b = one[:size], other[:size]
    if size < 12 or a.std() == 0 or b.std() == 0:
        return False
    return abs(np.corrcoef(a, b)[0, 1]) > 4 / np.sqrt(size)


def is_fitted_to_data(kind):
    """Not a transformer, and not a learner that asks questions of its own."""
    return hasattr(kind, "predict") and "query" not in kind.__module__


# Things that other tests have added have no system.
TASKS = [name for name in registry.tasks() if not name.startswith("own.")]
LEARNERS = [n for n, kind in registry.learners().items() if is_fitted_to_data(kind) and not n.startswith("own.")]


def test_planted_tasks_have_a_truth():
    assert {name for name in TASKS if truths(name)} >= {"aim.Task", "mha.Task", "slr.Task", "smi.Task"}


@pytest.mark.parametrize("name", TASKS)
def test_no_token_correlates_with_the_truth(name):
    # of another truth, which the tokens of some laws show, and with the integer of this one
    X, _ = task(name, SEED + 1).sample(200, SEED)
    assert not [key for key, truth in truths(name).items() if correlated(truth, X.ravel())]


@pytest.mark.parametrize("name", LEARNERS)
def test_no_start_correlates_with_the_truth_of_any_task(name):
    learner = fitted(name)
    learned = dict(arrays(learner, [key for key in vars(learner) if key.endswith("_")]))
    shared = [
        (key, of, plant)
        for of in TASKS
        for plant, truth in truths(of).items()
        for key, value in learned.items()
        if correlated(truth, value)
    ]
    assert not shared


@pytest.mark.parametrize("name", LEARNERS)
def test_every_fit_says_how_it_ended(name):
    learner = fitted(name)
    assert isinstance(learner.converged_, bool)
    assert isinstance(learner.n_iter_, int)
    assert isinstance(learner.stop_reason_, str)
    assert learner.stop_reason_


PLACED = [n for n in LEARNERS if "compute" in inspect.signature(registry.learners()[n]).parameters]


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="a GPU is here")
@pytest.mark.parametrize("name", PLACED)
def test_a_device_that_is_not_there_is_refused(name):
    with pytest.raises(ValueError, match=r"JAX sees no GPU|is supported by solver"):
        fitted_with(name, SEED, compute=Compute(device="gpu"))


def accepts_weights(method):
    return "sample_weight" in inspect.signature(method).parameters


@pytest.mark.parametrize("name", LEARNERS)
def test_fit_refuses_sample_weights(name):
    # a fit that begins to take weights needs a test here that it uses them
    assert not accepts_weights(registry.learners()[name].fit)


@pytest.mark.parametrize("name", [name for name in LEARNERS if accepts_weights(registry.learners()[name].score)])
def test_score_counts_only_rows_with_weight(name):
    X, y = task(own_task(name), SEED + 1).sample(40, SEED + 5)
    y = y + 0.5 * np.random.default_rng(SEED).standard_normal(y.shape)  # an exact fit scores 1 with any weights
    half = np.repeat([0.0, 1.0], 20)
    score = fitted(name).score
    assert score(X, y, sample_weight=half) == pytest.approx(score(X[20:], y[20:]), rel=1e-6)
    assert score(X, y, sample_weight=half) != pytest.approx(score(X, y), rel=1e-6)


# Those that take tables too are checked with their flat form, in the tests of their systems.
OF_SEQUENCES = [n for n in LEARNERS if "n_tokens" not in inspect.signature(registry.learners()[n]).parameters]


# Checks that need no table; the constructors' types are refused by the type checks of these tests first.
WITHOUT_DATA = (
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_estimators_unfitted",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_set_params",
    "check_valid_tag_types",
)


@pytest.mark.parametrize("name", OF_SEQUENCES)
def test_scikit_learn_accepts_a_learner_of_sequences(name):
    kind = registry.learners()[name]
    learner = kind(4) if required_of_learner(kind) else kind()
    with pytest.warns(SkipTestWarning):  # tables cannot be tried
        check_estimator(learner)
    for check in WITHOUT_DATA:
        getattr(estimator_checks, check)(name.split(".")[1], learner)


def test_equal_numbers_would_be_noticed():
    rng = np.random.default_rng(0)
    truth = rng.standard_normal(30)
    assert correlated(truth, np.r_[truth + 0.3 * rng.standard_normal(30), np.zeros(5)])
    assert not correlated(truth, rng.standard_normal(30))


SEEDED = [n for n in LEARNERS if "random_state" in inspect.signature(registry.learners()[n]).parameters]


@pytest.mark.slow
@pytest.mark.parametrize("name", SEEDED)
def test_a_generator_and_a_random_state_are_taken_as_an_integer_is(name):
    for state in (np.random.default_rng(SEED), np.random.RandomState(SEED), np.int64(SEED), None):
        assert fitted_with(name, state).stop_reason_


@pytest.mark.slow
@pytest.mark.parametrize("name", SEEDED)
def test_the_same_integer_gives_the_same_fit(name):
    law = task(own_task(name), SEED + 1)
    X, _ = law.sample(20, SEED + 3)
    one, other = (np.asarray(fitted_with(name, state).predict(X)) for state in (SEED, np.int64(SEED)))
    np.testing.assert_array_equal(one, other)
