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


def test_other_numbers_of_tokens_are_refused():
    X, y = aim.DeepTask(10, tokens=3).sample(5)
    with pytest.raises(ValueError, match="2 tokens"):
        aim.DeepAMP().fit(X, y)
