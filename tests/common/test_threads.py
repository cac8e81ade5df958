import threading
from itertools import chain

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from attnlab.common.threads import in_spans, single_threaded_blas, thread_count


def blas_threads():
    np.ones((2, 2)) @ np.ones((2, 2))
    return {entry["num_threads"] for entry in threadpool_info() if entry["user_api"] == "blas"}


def test_the_environment_decides_how_many_threads(monkeypatch):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    assert thread_count() == 3
    monkeypatch.delenv("OPENBLAS_NUM_THREADS")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert thread_count() >= 1


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_spans_cover_everything_once(threads):
    spans = in_spans(lambda first, last: list(range(first, last)), 20, threads)
    assert list(chain(*spans)) == list(range(20))


def test_blas_is_back_to_its_threads_when_the_last_block_has_ended():
    before = blas_threads()
    entered, leave = threading.Event(), threading.Event()

    def other():
        with single_threaded_blas():
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    with single_threaded_blas():
        thread.start()
        entered.wait(10)
        assert blas_threads() == {1}
    assert blas_threads() == {1}
    leave.set()
    thread.join()
    assert blas_threads() == before


def test_an_error_in_a_thread_is_raised():
    with pytest.raises(ZeroDivisionError):
        in_spans(lambda first, last: 1 // first, 4, 2)
