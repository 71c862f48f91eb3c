"""Small work runs on one thread, and other work keeps its threads."""

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from entangled_kernels.threads import one_thread


@pytest.fixture(autouse=True)
def _two_threads():
    """Two threads, also where the tests or the machine have one."""
    with threadpool_limits(2, user_api="blas"):
        assert set(blas_threads()) == {2}
        yield


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_small_work_has_one_thread():
    before = blas_threads()
    with one_thread(True):
        assert set(blas_threads()) == {1}
    assert blas_threads() == before


def test_other_work_keeps_its_threads():
    before = blas_threads()
    with one_thread(False):
        assert blas_threads() == before
    with one_thread(True), one_thread(False):
        assert set(blas_threads()) == {1}


def test_the_last_of_overlapping_contexts_lifts_the_limit():
    before = blas_threads()
    first, second = one_thread(True), one_thread(True)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert set(blas_threads()) == {1}
    second.__exit__(None, None, None)
    assert blas_threads() == before
