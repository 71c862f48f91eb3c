"""Timing, peak memory, tables and JSON for the benchmarks."""

import argparse
import json
import multiprocessing
import platform
import resource
import sys
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


def run_parts(name, description, parts):
    """Run the parts of a benchmark, print a table of each, and write all tables to a file.

    ``parts`` has functions that return rows, and whose docstring is the title of the table, with
    the small arguments of ``--quick``. On the command line some of them can be named.
    """
    names = {part.__name__: part for part in parts}
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(names)}")
    parser.add_argument("--quick", action="store_true", help="small, to see that it runs")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(names):
        parser.error(f"parts must be some of {', '.join(names)}, got {', '.join(sorted(unknown))}")
    tables = {}
    for part_name in options.parts or names:
        part = names[part_name]
        tables[part_name] = part(**parts[part]) if options.quick else part()
        print_table(part.__doc__.splitlines()[0], tables[part_name])
        sys.stdout.flush()
    write_json(name, tables)
