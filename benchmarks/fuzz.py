"""Thousands of random calls of all public estimators: each returns numbers, or a clear error.

A call fails when it raises anything but ValueError, TypeError or NotFittedError, when a number that
it returns is not finite, or when it takes more than 60 seconds of processor time.

    python benchmarks/fuzz.py [calls] [first seed] [processes]
"""

import argparse
import multiprocessing
import sys
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
from sklearn.exceptions import NotFittedError

from measure import print_table, write_json

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from reference.random_calls import call_at_random, draw_call

MOST_SECONDS = 60.0


def judge(seed):
    """Seed, estimator, "numbers" or the name of the error, the fault or None, and seconds."""
    warnings.simplefilter("ignore")
    name, fault, start = type(draw_call(seed).model).__name__, None, time.process_time()
    try:
        with np.errstate(all="ignore"):
            values = call_at_random(seed)
        outcome = "numbers"
        if not all(np.isfinite(value).all() for value in values):
            fault = "not finite"
    except (ValueError, TypeError, NotFittedError) as error:
        outcome = type(error).__name__
        # NumPy's LinAlgError is a ValueError, but tells a user nothing.
        if isinstance(error, np.linalg.LinAlgError):
            fault = traceback.format_exc()
    except Exception as error:
        outcome, fault = type(error).__name__, traceback.format_exc()
    seconds = time.process_time() - start
    if seconds > MOST_SECONDS:
        fault = f"{seconds:.0f} seconds"
    return seed, name, outcome, fault, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("calls", type=int, nargs="?", default=3000)
    parser.add_argument("first", type=int, nargs="?", default=0, help="first seed")
    parser.add_argument("processes", type=int, nargs="?", default=1)
    options = parser.parse_args()
    calls, first = options.calls, options.first
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        results = []
        for result in pool.imap_unordered(judge, range(first, first + calls)):
            results.append(result)
            if result[3] is not None:
                print(f"seed {result[0]}, {result[1]}: {result[3]}", flush=True)
    table = []
    for name in sorted({result[1] for result in results}):
        of_estimator = [result for result in results if result[1] == name]
        counts = Counter(outcome for _, _, outcome, _, _ in of_estimator)
        table.append(
            {
                "estimator": name,
                "calls": len(of_estimator),
                "numbers": counts["numbers"],
                "errors": len(of_estimator) - counts["numbers"],
                "faults": sum(fault is not None for *_, fault, _ in of_estimator),
                "longest s": max(result[4] for result in of_estimator),
            }
        )
    print_table(f"{calls} random calls from seed {first}", table)
    write_json("fuzz", {"calls": table})


if __name__ == "__main__":
    main()
