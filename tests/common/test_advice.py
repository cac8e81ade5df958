import threading
import warnings

import pytest

from attnlab.common.advice import advise, no_advice


def test_silence_is_of_one_thread():
    started, silent = threading.Event(), threading.Event()

    def quiet():
        with no_advice():
            started.set()
            silent.wait(5)

    thread = threading.Thread(target=quiet)
    thread.start()
    started.wait(5)
    with pytest.warns(UserWarning, match="heard"):
        advise("heard")
    silent.set()
    thread.join()


def test_nothing_is_said_within_no_advice_and_again_after_it():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with no_advice():
            advise("not heard")
        advise("heard")
    assert [str(w.message) for w in caught] == ["heard"]
