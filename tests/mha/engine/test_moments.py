import numpy as np

from attnlab import mha
from attnlab.mha.engine.moments import decompose, moment_tensor
from attnlab.mha.layer import rows_of


def symmetrised(theta, w):
    return np.einsum("ipq,irs->pqrs", theta, w) + np.einsum("ipr,iqs->pqrs", theta, w)


def test_the_tensor_of_weak_attention_is_the_symmetrised_product():
    task = mha.Task(d=4, k=3, n_heads=2, rho=0.05, tokens_law="gaussian")
    S = moment_tensor(rows_of(*task.sample(6000)))
    truth = symmetrised(task.Theta, task.W)
    # attention of strength 0.05 is linear up to a relative error of that order
    assert np.linalg.norm(S - truth) < 0.1 * np.linalg.norm(truth)


def test_alternating_least_squares_inverts_the_symmetrisation():
    task = mha.Task(d=5, k=3, n_heads=2, seed=2)
    theta, w = decompose(symmetrised(task.Theta, task.W), 2, sweeps=200)
    assert np.linalg.norm(symmetrised(theta, w) - symmetrised(task.Theta, task.W)) < 1e-3
    assert mha.span_error(theta, task.Theta) < 1e-2
