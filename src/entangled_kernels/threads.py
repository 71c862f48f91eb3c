"""BLAS threads kept away from work that is too small for them."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache

from threadpoolctl import ThreadpoolController

__all__ = ["SMALL_MATRIX", "one_thread"]

# Up to so many rows and columns of the matrices, a second BLAS thread costs more than it saves.
SMALL_MATRIX = 500


def one_thread(small: bool) -> AbstractContextManager[object]:
    """A context with one BLAS thread if the work is small, and else one that changes nothing.

    Where products take less than a millisecond, threads that wait for each other take several times as long
    as one of them alone.
    """
    return _thread_pools().limit(limits=1, user_api="blas") if small else nullcontext()


@cache
def _thread_pools() -> ThreadpoolController:
    """Looking for the BLAS libraries takes longer than many a search for a kernel."""
    return ThreadpoolController()
