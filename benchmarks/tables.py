"""Real tables, splits of them into training and test rows, and errors, for the benchmarks."""

import os
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer

LARGEST_TEST, SMALLEST_TEST = 500, 8


def default_data_home():
    """../shared/data if it is there and ENTANGLED_KERNELS_DATA is not set, else None."""
    shared = Path(__file__).parents[2] / "shared" / "data"
    return shared if shared.is_dir() and "ENTANGLED_KERNELS_DATA" not in os.environ else None


def fetch_available(fetchers, data_home=None):
    """Inputs and targets by name, from functions of `entangled_kernels.datasets`.

    A table that cannot be read or downloaded is left out, with a message.
    """
    available = {}
    for name, fetch in fetchers.items():
        try:
            available[name] = fetch(data_home=data_home or default_data_home(), return_X_y=True)
        except (OSError, ImportError) as error:
            print(f"left out: {name}: {error}")
    return available


def breast_cancer():
    """Ten measurements of cell nuclei, the worst of each, from their means and standard errors."""
    cancer = load_breast_cancer().data
    return cancer[:, :20], cancer[:, 20:]


def split_rows(X, Y, n, split):
    """n training rows and at most 500 test rows; None if too few are left to test on."""
    if len(X) - n < SMALLEST_TEST:
        return None
    order = np.random.default_rng([split, n]).permutation(len(X))
    train, test = order[:n], order[n : n + LARGEST_TEST]
    return X[train], Y[train], X[test], Y[test]


def standardise(X, Y, X_test, Y_test):
    """Columns with mean 0 and deviation 1 in the training rows."""

    def scale(train, test):
        mean, deviation = train.mean(axis=0), train.std(axis=0)
        deviation[deviation == 0.0] = 1.0
        return (train - mean) / deviation, (test - mean) / deviation

    (X, X_test), (Y, Y_test) = scale(X, X_test), scale(Y, Y_test)
    return X, Y, X_test, Y_test


def target_errors(Y, prediction):
    """Mean squared error of every target over its variance; NaN for a constant target."""
    variance = Y.var(axis=0)
    errors = np.mean((Y - prediction) ** 2, axis=0)
    return np.where(variance > 1e-12, errors, np.nan) / np.maximum(variance, 1e-12)


def nmse(Y, prediction):
    """Mean of `target_errors` over the targets that vary."""
    return float(np.nanmean(target_errors(Y, prediction)))


def promised_over_fresh(model, Y, Y_test, prediction):
    """The cross-validated error of a search over its error on the test rows.

    Both are in units of the variance of the training rows.
    """
    varies = Y.var(axis=0) > 1e-12
    fresh = np.mean((Y_test - prediction) ** 2, axis=0)[varies] / Y.var(axis=0)[varies]
    return float(model.cv_score_ / fresh.mean())
