"""One BLAS thread for work that is too small for several."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock

from threadpoolctl import ThreadpoolController

__all__ = ["SMALL_MATRIX", "one_thread"]

# Up to this many rows and columns of a matrix, a second BLAS thread costs more time than it saves.
SMALL_MATRIX = 500


_lock, _inside = Lock(), list[object]()


@contextmanager
def one_thread(small: bool) -> Iterator[None]:
    """Limit BLAS to one thread inside the context if the work is small; otherwise change nothing.

    For products of less than a millisecond, several threads that wait for each other take several
    times as long as one thread. Contexts may overlap in several threads: the last one to end
    restores the number of threads.
    """
    if not small:
        yield
        return
    with _lock:
        # BLAS has one limit for the whole process, which the first context sets.
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
    """The BLAS libraries of this process; kept, because finding them takes longer than many fits."""
    return ThreadpoolController()
