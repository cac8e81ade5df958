"""A prediction behaves as its value, and says how accurate it is."""

import numpy as np

from attnlab.common.prediction import Prediction


def test_a_number():
    p = Prediction(0.5)
    assert float(p) == 0.5
    assert p + 1 == 1.5
    assert 1 - p == 0.5
    assert p < 0.6
    assert round(Prediction(0.12345), 2) == 0.12
    assert f"{p:.2f}" == "0.50"


def test_an_array():
    p = Prediction(np.array([1.0, 4.0]), converged=np.array([True, False]))
    assert np.sqrt(p).tolist() == [1, 2]
    assert (p * p).tolist() == [1, 16]
    assert len(p) == 2
    assert p[1] == 4
    assert np.mean(p) == 2.5
    assert "not converged" in repr(p)


def test_a_notebook_shows_a_table():
    assert Prediction([1.0, 2.0], error=0.1)._repr_html_().count("<tr>") == 3
