import dataclasses

import pytest

from attnlab.common.solution import Solution


def test_a_solution_says_whether_it_converged_and_cannot_be_changed():
    found = Solution(value=0.5, converged=False, n_iter=7, residual=1e-3)
    assert (found.value, found.converged, found.n_iter, found.residual) == (0.5, False, 7, 1e-3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.converged = True
