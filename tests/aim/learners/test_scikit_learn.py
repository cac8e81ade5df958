"""What scikit-learn asks of an estimator, for tokens in three dimensions and a matrix of outputs.

``check_estimator`` makes tables, which learners of sequences refuse: they say so in their tags, and it then checks
nothing else. Its checks without data run here as they are (but for values of wrong types in the constructor, which the
type checks of these tests refuse first); those that fit run on sequences.
"""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import estimator_checks

from attnlab import aim

LEARNERS = [
    aim.AMP(max_iter=3),
    aim.GradientDescent(4, optimizer=aim.Adam(n_steps=3), random_state=0),
    aim.NuclearNorm(0.1, max_iter=3),
    aim.OnlineSGD(4, batch_size=16, step=0.1, random_state=0),
    aim.DeepAMP(layers=1, max_iter=3),
]
WITHOUT_DATA = (
    "check_estimator_cloneable",
    "check_estimator_tags_renamed",
    "check_valid_tag_types",
    "check_estimator_repr",
    "check_no_attributes_set_in_init",
    "check_estimators_unfitted",
    "check_mixin_order",
    "check_set_params",
    "check_get_params_invariance",
)


@pytest.fixture(params=LEARNERS, ids=lambda learner: type(learner).__name__)
def learner(request):
    return clone(request.param)


@pytest.fixture(scope="module")
def data():
    return aim.Task(8, seed=1).sample(40, seed=2)


def fitted(learner, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return learner.fit(X, y)


@pytest.mark.parametrize("name", WITHOUT_DATA)
def test_a_check_without_data(learner, name):
    getattr(estimator_checks, name)(type(learner).__name__, learner)


def test_scikit_learn_s_own_list(learner):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that tables cannot be tried
        for one, check in estimator_checks.estimator_checks_generator(learner):
            check(one)


def test_a_fit_returns_itself_and_keeps_its_parameters(learner, data):
    before = {name: str(value) for name, value in learner.get_params().items()}
    assert fitted(learner, *data) is learner
    assert {name: str(value) for name, value in learner.get_params().items()} == before
    own = [name for name in vars(learner) if name not in before]
    assert all(name.endswith("_") or name.startswith("_") for name in own)


def test_fits_repeat_and_survive_pickling(learner, data):
    X, y = data
    X.setflags(write=False)
    y.setflags(write=False)
    first = fitted(learner, X, y).predict(X)
    again = fitted(clone(learner), X.copy(), y.copy()).predict(X)
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(first, pickle.loads(pickle.dumps(learner)).predict(X))


@pytest.mark.parametrize("bad", [np.ones((40, 3)), np.ones((0, 2, 8)), np.full((40, 2, 8), np.nan)])
def test_data_that_are_no_sequences_are_refused(learner, data, bad):
    with pytest.raises(ValueError, match="X"):
        learner.fit(bad, data[1][: len(bad)])
