"""A learner of a user's own, slow on purpose; read by the command line with --module."""

import os
import time

from sklearn.base import BaseEstimator, RegressorMixin

from attnlab import lab


class Slow(RegressorMixin, BaseEstimator):
    """Predicts zero after a while."""

    def __init__(self, seconds=0.2, random_state=None):
        self.seconds = seconds
        self.random_state = random_state

    def fit(self, X, y):
        time.sleep(self.seconds)
        self.constant_ = float(os.environ.get("MINE_CONSTANT", 0.0))
        return self

    def predict(self, X):
        return X[:, 0, 0] * 0.0 + self.constant_


lab.add(Slow)
