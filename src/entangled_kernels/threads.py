"""BLAS threads kept away from work that is too small for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock

from threadpoolctl import ThreadpoolController

__all__ = ["SMALL_MATRIX", "one_thread"]

# Up to so many rows and columns of the matrices, a second BLAS thread costs more than it saves.
SMALL_MATRIX = 500


_lock, _inside = Lock(), list[object]()


@contextmanager
def one_thread(small: bool) -> Iterator[None]:
    """A context with one BLAS thread if the work is small, and else one that changes nothing.

    Where products take less than a millisecond, threads that wait for each other take several times
    as long as one of them alone. Contexts may overlap in several threads: the last one to end lifts
    the limit.
    """
    if not small:
        yield
        return
    with _lock:
        # The number of BLAS threads is one for the whole process, so the first sets it for all.
        _inside.append(_thread_pools().limit(limits=1, user_api="blas") if not _inside else None)
    try:
        yield
    finally:
        with _lock:
            if len(_inside) == 1:
                _inside[0].restore_original_limits()  # type: ignore[attr-defined]
                _inside.clear()
            else:
                _inside.pop()


@cache
def _thread_pools() -> ThreadpoolController:
    """Looking for the BLAS libraries takes longer than many a search for a kernel."""
    return ThreadpoolController()
