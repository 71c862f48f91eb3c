"""What a user should know while a kernel is learned: progress, sizes that take long, solvers that stall."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from sklearn.exceptions import ConvergenceWarning

from ..learning import Fit, Problem, Progress

__all__ = ["print_progress", "warn_if_stalled", "warn_of_size"]

# A step of an iterative solver with more multiplications than this takes seconds.
LARGE_STEP = 2e10


def warn_if_stalled(fit: Fit) -> None:
    """Warn where a solver stopped before its tolerance because it could get no further."""
    if fit.stop_reason == "stalled":
        warnings.warn(
            f"solver={fit.settings.solver!r} could not raise the alignment any further after {fit.n_iter} "
            f"steps, although the gradient is longer than tol={fit.settings.tol}; standardise the features "
            f"or raise tol",
            ConvergenceWarning,
            stacklevel=5,
        )


def warn_of_size(problem: Problem, solver: str, rank: int | float | None) -> None:
    """Warn where every step of a solver may take long."""
    operators = problem.resolve_rank(rank) or problem.full_rank
    if problem.full_rank * operators**2 > LARGE_STEP:
        warnings.warn(
            f"every step of solver={solver!r} multiplies matrices of {problem.full_rank} x {operators}, "
            f"which may take long; set rank to a smaller number, or use solver='closed-form'",
            UserWarning,
            stacklevel=5,
        )


def print_progress(max_iter: int) -> Callable[[Progress], None]:
    """A callback that prints the alignment of every tenth step."""

    def report(progress: Progress) -> None:
        if progress.n_iter % 10 == 0 or progress.n_iter == max_iter:
            print(
                f"[EntangledKernelRidge] step {progress.n_iter}/{max_iter}  "
                f"alignment {progress.value:.6f}  gradient {progress.gradient_norm:.1e}"
            )

    return report
