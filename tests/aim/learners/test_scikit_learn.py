"""What scikit-learn asks of a fit, for tokens in three dimensions and a matrix of outputs; its checks without data run
for all learners in tests/systems.
"""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from attnlab import aim

LEARNERS = [
    aim.AMP(max_iter=3),
    aim.GradientDescent(4, optimizer=aim.Adam(n_steps=3), random_state=0),
    aim.NuclearNorm(0.1, max_iter=3),
    aim.OnlineSGD(4, batch_size=16, step=0.1, random_state=0),
    aim.DeepAMP(layers=1, max_iter=3),
]


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


def test_a_second_fit_forgets_the_first(learner, data):
    other = aim.Task(6, 3, seed=3).sample(30, seed=4)
    again = fitted(fitted(learner, *data), *other).predict(other[0])
    np.testing.assert_array_equal(again, fitted(clone(learner), *other).predict(other[0]))
    with pytest.raises(ValueError, match="X must have 3 tokens"):
        learner.predict(data[0])


def test_a_prediction_is_that_of_its_sequence_alone(learner, data):
    X, y = data
    predicted = fitted(learner, X, y).predict(X)
    np.testing.assert_allclose(learner.predict(X[:5]), predicted[:5], atol=1e-12)
    np.testing.assert_allclose(learner.predict(X[::-1]), predicted[::-1], atol=1e-12)
    # rounding of sums in another order
    listed = fitted(clone(learner), X.tolist(), y.tolist()).predict(np.asfortranarray(X))
    np.testing.assert_allclose(listed, predicted, atol=1e-10)


def test_without_a_fit_there_is_no_prediction(learner, data):
    with pytest.raises(NotFittedError):
        learner.predict(data[0])


@pytest.mark.parametrize("bad", [None, "short", "nan", "text"])
def test_outputs_that_are_none_are_refused(learner, data, bad):
    X, y = data
    bad = {None: None, "short": y[:-1], "nan": np.where(y == y[0, 0, 0], np.nan, y), "text": y.astype(str)}[bad]
    with pytest.raises((TypeError, ValueError), match=r"^y "):
        learner.fit(X, bad)


@pytest.mark.parametrize("bad", [np.ones((40, 3)), np.ones((0, 2, 8)), np.full((40, 2, 8), np.nan)])
def test_data_that_are_no_sequences_are_refused(learner, data, bad):
    with pytest.raises(ValueError, match="X"):
        learner.fit(bad, data[1][: len(bad)])
