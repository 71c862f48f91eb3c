"""The classifier: regression on indicators, and probabilities calibrated on held-out rows."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import approx_fprime
from sklearn.datasets import (
    load_iris,
    load_wine,
    make_classification,
    make_multilabel_classification,
)
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, log_loss
from sklearn.model_selection import GroupKFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from entangled_kernels import EntangledKernelClassifier, EntangledKernelRidgeCV

ALPHAS = np.logspace(-4, 3, 8)
GRID = {"shrinkage": [1.0], "target_alpha": [0.1], "alignment_mix": [0.0]}


def quick(**others):
    settings = {"param_grid": GRID, "alphas": ALPHAS, "cv": 3, "random_state": 0} | others
    return EntangledKernelClassifier(StandardScaler(), **settings)


# The checks fit many tiny tables, on some of which the best alpha is the largest or the smallest.
@pytest.mark.filterwarnings("ignore:the (smallest|largest) of the alphas")
@parametrize_with_checks([quick()])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return X[order[:90]], y[order[:90]], X[order[90:]], y[order[90:]]


def test_probabilities_of_real_classes(wine):
    X, y, X_new, y_new = wine
    model = quick().fit(X, y)
    proba = model.predict_proba(X_new)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(X_new), proba.argmax(axis=1))
    logistic = LogisticRegression().fit(StandardScaler().fit(X).transform(X), y)
    other = logistic.predict_proba(StandardScaler().fit(X).transform(X_new))
    assert model.score(X_new, y_new) > 0.9
    assert log_loss(y_new, proba) < 2.0 * log_loss(y_new, other) + 0.1


def test_two_classes_are_a_ridge_on_signs(wine):
    """Decisions are an increasing function of the regression on -1 and +1."""
    X, y, X_new, _ = wine
    y = np.where(y == 0, "no", "yes")
    model = quick(cv=StratifiedKFold(3)).fit(X, y)
    splits = list(StratifiedKFold(3).split(X, y))
    ridge = EntangledKernelRidgeCV(
        StandardScaler(), alphas=ALPHAS, param_grid=GRID, cv=splits, random_state=0
    )
    signs = ridge.fit(X, np.where(y == "yes", 1.0, -1.0)).predict(X_new)
    decision = model.decision_function(X_new)
    np.testing.assert_allclose(decision, model.slope_ * signs + model.offset_)
    np.testing.assert_array_equal(model.predict(X_new), np.where(decision > 0, "yes", "no"))
    assert list(model.classes_) == ["no", "yes"]


def test_the_calibration_is_the_best_one():
    from entangled_kernels.estimators.entangled_kernel_classifier import _fit_softmax

    rng = np.random.default_rng(0)
    truth = np.eye(3)[rng.integers(3, size=60)]
    values, weight = 2.0 * truth - 1.0 + rng.normal(size=(60, 3)), rng.uniform(0.5, 2.0, size=60)
    slope, offset = _fit_softmax(values, truth, weight)
    counts = weight @ truth

    def loss(parameters):
        logits = parameters[0] * values + parameters[1:]
        log_proba = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        total = 0.0
        for row, label in enumerate(truth.argmax(axis=1)):
            certain = (counts[label] + 1) / (counts[label] + 2)
            wanted = np.full(3, (1 - certain) / 2)
            wanted[label] = certain
            total -= weight[row] * wanted @ log_proba[row]
        return total / weight.sum()

    at = np.concatenate([slope, offset])
    np.testing.assert_allclose(approx_fprime(at, loss, 1e-7), 0.0, atol=1e-4)


def test_probabilities_are_calibrated_on_the_rows_that_they_are_of():
    """With more than 60 rows, folds hold out rows in another order than that of the table."""
    X, y = make_classification(200, 6, flip_y=0.2, random_state=0)
    model = quick().fit(X, y)
    held_out = model.regressor_.held_out_predictions()
    decision = (model.slope_ * held_out.predicted + model.offset_)[:, 0]
    best = LogisticRegression(C=1e6).fit(held_out.predicted, y)
    expected = log_loss(y, best.predict_proba(held_out.predicted))
    assert log_loss(y, 1.0 / (1.0 + np.exp(-decision))) < 1.01 * expected


def test_rare_classes_count_when_they_are_weighted():
    X, y = make_classification(400, 8, n_informative=4, weights=[0.93], flip_y=0.02, random_state=1)
    plain = quick().fit(X[:200], y[:200]).predict(X[200:])
    weighted = quick(class_weight="balanced").fit(X[:200], y[:200]).predict(X[200:])
    scores = [balanced_accuracy_score(y[200:], found) for found in (plain, weighted)]
    assert scores[1] > scores[0]


def test_balanced_coding_of_balanced_classes_changes_nothing():
    X, y = load_iris(return_X_y=True)
    kernels = {"param_grid": {"shrinkage": [0.25]}}
    signs, balanced = (
        quick(coding=coding, **kernels).fit(X, y) for coding in ("signs", "balanced")
    )
    np.testing.assert_allclose(balanced.predict_proba(X), signs.predict_proba(X), atol=1e-6)


def test_labels_of_a_row():
    X, Y = make_multilabel_classification(150, 6, n_classes=4, random_state=0)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = quick().fit(frame[:100], Y[:100])
    proba = model.predict_proba(frame[100:])
    assert proba.shape == (50, 4)
    np.testing.assert_array_equal(model.predict(frame[100:]), proba > 0.5)
    assert (
        np.mean(model.predict(frame[100:]) == Y[100:]) > np.mean(Y[100:].mean(axis=0) < 0.5) - 0.1
    )
    assert list(model.feature_names_in_) == list("abcdef")


def test_groups_and_weights_reach_the_regression(wine):
    X, y, X_new, _ = wine
    groups = np.arange(len(y)) // 3
    by_number = quick().fit(X, y, groups=groups)
    splits = list(GroupKFold(3).split(X, y, groups))
    by_splitter = quick(cv=GroupKFold(3)).fit(X, y, groups=groups)
    by_list = quick(cv=splits).fit(X, y)
    np.testing.assert_array_equal(by_splitter.predict_proba(X_new), by_list.predict_proba(X_new))
    assert by_number.regressor_.n_splits_ == 3
    doubled = quick().fit(X, y, np.full(len(y), 2.0))
    np.testing.assert_allclose(doubled.predict_proba(X_new), quick().fit(X, y).predict_proba(X_new))


@pytest.mark.parametrize(
    ("options", "y", "name"),
    [
        ({"coding": "sign"}, [0, 1] * 6, "coding"),
        ({}, [1] * 12, "y must hold at least two classes"),
        ({}, np.linspace(0, 1, 12), "Unknown label type"),
        ({"cv": 1}, [0, 1] * 6, "cv"),
    ],
)
def test_errors_name_what_is_wrong(options, y, name):
    with pytest.raises(ValueError, match=name):
        quick(**options).fit(np.arange(24.0).reshape(12, 2), y)


@pytest.mark.parametrize("X", [(), "", {"a": 1}, [], 3.0], ids=repr)
def test_tables_that_are_none_are_refused(X):
    with pytest.raises((TypeError, ValueError), match=r"X|array|samples"):
        quick().fit(X, [0, 1] * 6)
