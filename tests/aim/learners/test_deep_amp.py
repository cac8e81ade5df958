import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from attnlab import aim


def test_two_layers_are_learned_together():
    task = aim.DeepTask(40, rho=np.inf, seed=1)
    X, y = task.sample(task.n_samples(0.2), seed=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = aim.DeepAMP(np.inf, max_iter=20).fit(X, y, truth=task.S)
    # the state evolution gives (0.726, 0.397); one instance at d = 40 lies up to 15 % above it
    first, second = model.trace_["mse"][-1]
    assert 0.6 < first < 0.9
    assert 0.3 < second < 0.55
    assert model.score(*task.sample(300, seed=3)) > 0.2


def test_one_layer_is_the_single_layer_algorithm():
    task = aim.DeepTask(24, layers=1, seed=1)
    X, y = task.sample(task.n_samples(0.15), seed=2)
    options = {"damping": 0.3, "max_iter": 8}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        deep = aim.DeepAMP(0.5, layers=1, **options).fit(X, y)
        plain = aim.AMP(0.5, **options).fit(X, y)
    # float32 products in another order
    np.testing.assert_allclose(deep.S_[0], plain.S_, atol=1e-5)
    assert deep.trace_.keys() == plain.trace_.keys()


@pytest.mark.slow
@pytest.mark.parametrize(("layers", "tokens"), [(3, 2), (2, 3)])
def test_more_layers_and_tokens_are_learned_the_last_layer_first(layers, tokens):
    task = aim.DeepTask(24, tokens, layers, rho=np.inf, seed=1)
    X, y = task.sample(task.n_samples(0.3), seed=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = aim.DeepAMP(np.inf, layers=layers, max_iter=8).fit(X, y, truth=task.S)
    mse = np.array(model.trace_["mse"][-1])
    assert mse.shape == (layers,)
    assert np.argmin(mse) == layers - 1
    assert mse[-1] < 0.7


@pytest.mark.parametrize(("layers", "tokens"), [(4, 2), (2, 5)])
def test_more_than_can_be_integrated_is_refused(layers, tokens):
    X, y = aim.DeepTask(10, tokens, layers).sample(5)
    with pytest.raises(ValueError, match="must be at most"):
        aim.DeepAMP(layers=layers).fit(X, y)
