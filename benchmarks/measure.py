"""Timing, peak memory, tables and JSON for the benchmarks."""

import json
import multiprocessing
import platform
import resource
import time
from pathlib import Path

import numpy
import scipy
import sklearn

RESULTS = Path(__file__).parent / "results"


def best_seconds(functions, repeats=3):
    """Best time of each function; the functions take turns, so that a busy moment slows all."""
    best = {name: float("inf") for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def processor_seconds(function, *args, repeats=1):
    """Least processor time over repeated calls, which other programs disturb less than wall time."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        function(*args)
        best = min(best, time.process_time() - start)
    return best


def in_fresh_process(function, *args):
    """Result of a function in a new interpreter, and the peak memory of that interpreter in MB."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_with_peak, (function, args))


def _with_peak(function, args):
    result = function(*args)
    # The peak from getrusage includes the parent, this one does not.
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return result, int(line.split()[1]) / 1024
    return result, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def software():
    return {
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }


def print_table(title, rows):
    """Print rows, which are dicts with the same keys."""
    if not rows:
        print(f"\n{title}: nothing was measured")
        return
    cells = [[_text(value) for value in row.values()] for row in rows]
    header = list(rows[0])
    widths = [max(len(line[i]) for line in [header, *cells]) for i in range(len(header))]
    print(f"\n{title}")
    for line in [header, ["-" * width for width in widths], *cells]:
        print(
            "  "
            + "  ".join(
                cell.ljust(width) for cell, width in zip(line, widths, strict=True)
            ).rstrip()
        )


def _text(value):
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def write_json(name, tables):
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(
        json.dumps({"software": software(), "tables": tables}, indent=2, default=float) + "\n"
    )
    print(f"\nwritten: {path.relative_to(Path(__file__).parent.parent)}")
