"""Small fitted models that the displays draw."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import Nystroem

from entangled_kernels import EntangledKernelRidge, EntangledKernelRidgeCV
from entangled_kernels.io import ExperimentResults


@pytest.fixture(scope="session")
def digits():
    """Images of the digits 0 to 2, fifteen to learn from and thirty others: X, labels and targets of each."""
    X, labels = load_digits(n_class=3, return_X_y=True)
    X, labels = X[:45] / 16.0, labels[:45]
    Y = np.where(labels[:, None] == np.arange(3), 1.0, -1.0)
    return X[:15], labels[:15], Y[:15], X[15:], labels[15:], Y[15:]


@pytest.fixture(scope="session")
def model(digits):
    features = Nystroem(gamma=0.05, n_components=12, random_state=0)
    estimator = EntangledKernelRidge(
        features, solver="ascent", rank=2, shrinkage=0.0, solver_params={"max_iter": 30}
    )
    return estimator.fit(digits[0], digits[2])


@pytest.fixture(scope="session")
def search(digits):
    with warnings.catch_warnings():
        # An end of a short grid may be the best.
        warnings.simplefilter("ignore", UserWarning)
        return EntangledKernelRidgeCV(
            Nystroem(gamma=0.05, n_components=12, random_state=0),
            alphas=[0.001, 0.01, 0.1, 1.0],
            cv=3,
            random_state=0,
            param_grid={"shrinkage": (0.0, 0.5, 1.0)},
        ).fit(digits[0], digits[2])


@pytest.fixture(scope="session")
def results():
    rng = np.random.default_rng(0)
    power = {"KRR": 3, "EKL": 2, "mine": 1}
    records = [
        {
            "method": method,
            "n": n,
            "task": task,
            "split": split,
            "nmse": (0.2 + 0.05 * task) * (50 / n) ** 0.3 * (1 + 0.05 * rng.normal()),
            "ni": 0.1 * rng.normal(),
            "fit_seconds": 1e-6 * n ** power[method],
        }
        for method in power
        for n in (1000, 50, 200)
        for task in (1, 2)
        for split in range(4)
    ]
    paper = [{"method": "EKL", "n": n, "task": 1, "nmse": 0.2} for n in (50, 400)]
    return ExperimentResults("robot", "Robot arm", records, paper)
