"""Classification by entangled kernel ridge regression on class indicators."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import expit, logsumexp, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import RepeatedStratifiedKFold, check_cv
from sklearn.utils import Tags, compute_sample_weight
from sklearn.utils.validation import _num_samples, check_is_fitted

from ..doc_links import DocLinkMixin
from ..linalg import Array
from ..parameters import check_choice
from ..selection.folds import FEW_ROWS, SPLITS_OF_FEW_ROWS
from .base import check_columns, check_labels
from .entangled_kernel_ridge_cv import EntangledKernelRidgeCV

__all__ = ["CODINGS", "EntangledKernelClassifier"]

CODINGS = ("signs", "balanced")


class EntangledKernelClassifier(ClassifierMixin, DocLinkMixin, BaseEstimator):
    """Classifier that fits `EntangledKernelRidgeCV` to class indicators, as `RidgeClassifier` fits ridge.

    Every class is a target that is +1 for its rows and -1 for the others; two classes share one
    target, and labels of a multilabel problem are a target each. Probabilities are calibrated on
    held-out rows.

    Parameters
    ----------
    feature_map : "auto", transformer, None, or list of the last two, default="auto"
        As in `EntangledKernelRidgeCV`.
    coding : {"signs", "balanced"}, default="signs"
        Values of the targets that the kernel is aligned with: +1 and -1, or n / (2 n_plus) and
        -n / (2 n_minus) for a class with n_plus rows, so that rare classes count as much as common
        ones (Kandola, Shawe-Taylor and Cristianini 2002).
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply the weights of their rows. ``"balanced"`` gives all
        classes the same total weight.
    alphas, param_grid : as in `EntangledKernelRidgeCV`
    cv : int, splitter or iterable of splits, default=5
        An int is a number of shuffled folds, stratified by class, or of folds of whole groups if
        `fit` is given groups.
    selection, n_jobs, random_state, verbose : as in `EntangledKernelRidgeCV`

    Attributes
    ----------
    classes_ : ndarray
        The classes in order; numbers of the labels in a multilabel problem.
    regressor_ : EntangledKernelRidgeCV
        The fitted regression on the indicators, with `explain` and `novelty`.
    slope_, offset_ : ndarray
        The decision function is slope times the regression's prediction, in units of +1 and -1,
        plus offset.
    n_features_in_, feature_names_in_ : int, ndarray

    Notes
    -----
    `decision_function` holds log-odds. For two classes, and for each label of a multilabel problem,
    they are those of a logistic function with a slope and an offset; for more classes the logits of
    a softmax with one slope and an offset for each class. Both are fitted by maximum likelihood to
    held-out predictions, with labels smoothed as Platt (1999) does, so that few rows do not make
    the model certain. `predict` gives the most probable class.

    References
    ----------
    R. Huusari and H. Kadri, "Entangled Kernels - Beyond Separability", Journal of Machine Learning
    Research 22 (2021), 1-40.

    J. Platt, "Probabilistic outputs for support vector machines", Advances in Large Margin
    Classifiers (1999), 61-74.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.preprocessing import StandardScaler
    >>> from entangled_kernels import EntangledKernelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = EntangledKernelClassifier(StandardScaler(), random_state=0).fit(X[::2], y[::2])
    >>> model.predict_proba(X[1:3]).shape
    (2, 3)
    >>> bool(model.score(X[1::2], y[1::2]) > 0.8)
    True
    """

    def __init__(
        self,
        feature_map: Any = "auto",
        *,
        coding: str = "signs",
        class_weight: Any = None,
        alphas: ArrayLike | None = None,
        param_grid: Any = None,
        cv: Any = 5,
        selection: str = "average",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.feature_map = feature_map
        self.coding = coding
        self.class_weight = class_weight
        self.alphas = alphas
        self.param_grid = param_grid
        self.cv = cv
        self.selection = selection
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit the regression on class indicators, and calibrate probabilities on held-out rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            Classes, numbers or text, or indicators (0 and 1) of labels.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative.
        groups : array-like of shape (n_samples,), optional
            Rows of a group are held out together.

        Returns
        -------
        self
        """
        check_choice("coding", self.coding, CODINGS)
        check_columns(self, X)
        y, weight = check_labels(self, X, y, sample_weight)
        counted = np.ones(len(y), dtype=bool) if weight is None else weight > 0.0
        self._multilabel = y.ndim == 2
        if self._multilabel:
            self.classes_: NDArray[Any] = np.arange(y.shape[1])
            positive = y != 0
        else:
            self.classes_ = np.unique(y)
            positive = y[:, None] == self.classes_
            positive = positive[:, 1:] if len(self.classes_) == 2 else positive
        if self.class_weight is not None:
            balance = compute_sample_weight(self.class_weight, y)
            weight = balance if weight is None else weight * balance
        high, low = np.ones(positive.shape[1]), -np.ones(positive.shape[1])
        if self.coding == "balanced":
            n, n_plus = counted.sum(), positive[counted].sum(axis=0)
            high, low = n / (2.0 * np.maximum(1, n_plus)), -n / (2.0 * np.maximum(1, n - n_plus))
        self._high, self._low = high, low
        self.regressor_ = EntangledKernelRidgeCV(
            self.feature_map,
            alphas=self.alphas,
            param_grid=self.param_grid,
            cv=self._splits(X, y, groups),
            selection=self.selection,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
            verbose=self.verbose,
        ).fit(X, np.where(positive, high, low), weight, groups)
        model = self.regressor_.model_
        if model.residuals is None or model.measured is None:
            raise ValueError("cv must hold out at least one row, to calibrate probabilities")
        rows = model.residuals.by_row()
        values = self._in_signs(model.measured - rows.values)
        truth = (model.measured > (high + low) / 2.0).astype(float)
        fit = _fit_softmax if values.shape[1] > 1 and not self._multilabel else _fit_logistic
        self.slope_, self.offset_ = fit(values, truth, rows.weight)
        return self

    def decision_function(self, X: Any) -> Array:
        """Log-odds of the classes.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)

        Returns
        -------
        scores : ndarray of shape (n,), (n, n_classes) or (n, n_labels)
            For two classes positive where the second one is more probable.
        """
        check_is_fitted(self)
        check_columns(self, X, reset=False)
        prediction = np.asarray(self.regressor_.predict(X)).reshape(_num_samples(X), -1)
        scores = self.slope_ * self._in_signs(prediction) + self.offset_
        return scores if self._multilabel or scores.shape[1] > 1 else scores[:, 0]

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of every row, (n,), or indicators of labels, (n, n_labels)."""
        scores = self.decision_function(X)
        if self._multilabel:
            return (scores > 0.0).astype(np.intp)
        number = (scores > 0.0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[number])

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, (n, n_classes), or of every label, (n, n_labels)."""
        scores = self.decision_function(X)
        if self._multilabel:
            return np.asarray(expit(scores))
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        return np.asarray(softmax(scores, axis=1))

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.input_tags.sparse = (
            EntangledKernelRidgeCV(self.feature_map).__sklearn_tags__().input_tags.sparse
        )
        return tags

    def _in_signs(self, values: Array) -> Array:
        """Predictions of the regression in units in which targets are +1 and -1."""
        scaled = (2.0 * values - self._high - self._low) / (self._high - self._low)
        return np.asarray(scaled)

    def _splits(self, X: Any, y: NDArray[Any], groups: Any) -> Any:
        """The parameter ``cv`` of the regression: a number, or splits stratified by class."""
        if not isinstance(self.cv, (int, np.integer)):
            if not hasattr(self.cv, "split"):
                return self.cv
            return list(check_cv(self.cv, y, classifier=True).split(np.zeros(len(y)), y, groups))
        smallest = 0 if self._multilabel else np.unique(y, return_counts=True)[1].min()
        if groups is not None or smallest < 2 or not 2 <= self.cv <= len(y):
            return self.cv
        n_repeats = -(-SPLITS_OF_FEW_ROWS // int(self.cv)) if len(y) <= FEW_ROWS else 1
        folds = RepeatedStratifiedKFold(
            n_splits=int(self.cv), n_repeats=n_repeats, random_state=self.random_state
        )
        with warnings.catch_warnings():
            # A class with fewer rows than folds is missing in some folds.
            warnings.filterwarnings("ignore", "The least populated class", UserWarning)
            return list(folds.split(np.zeros(len(y)), y))


def _fit_logistic(values: Array, truth: Array, weight: Array) -> tuple[Array, Array]:
    """Slope and offset (K,) of a logistic function for every column of held-out values (N, K)."""
    slopes, offsets = [], []
    for column, label in zip(values.T, truth.T, strict=True):
        # A softmax of zero and the value.
        logits = np.column_stack([np.zeros(len(column)), column])
        slope, offset = _fit_softmax(logits, np.column_stack([1.0 - label, label]), weight)
        slopes.append(slope[0])
        offsets.append(offset[1] - offset[0])
    return np.array(slopes), np.array(offsets)


def _fit_softmax(values: Array, truth: Array, weight: Array) -> tuple[Array, Array]:
    """One slope, as (1,), and offsets (K,) of a softmax of held-out values (N, K).

    Notes
    -----
    Minimises the log loss of smoothed labels: a row of a class with a total weight of N_k has the
    probability (N_k + 1) / (N_k + 2) of this class, and the rest is shared by the other classes.
    """
    K = values.shape[1]
    counts = weight @ truth
    certain = (counts + 1.0) / (counts + 2.0)
    rest = (1.0 - certain) / max(1, K - 1)
    labels = truth @ (np.diag(certain - rest) + rest[:, None])
    share = weight / weight.sum()

    def loss(parameters: Array) -> tuple[float, Array]:
        slope, offset = np.exp(parameters[0]), parameters[1:]
        logits = slope * values + offset
        normal = logsumexp(logits, axis=1)
        error = share[:, None] * (np.exp(logits - normal[:, None]) - labels)
        value = float(share @ (normal - np.sum(labels * logits, axis=1)))
        towards = slope * float(np.vdot(error, values))
        return value, np.concatenate([[towards], error.sum(axis=0)])

    start = np.zeros(K + 1)
    optimum = minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=[(-8.0, 8.0)] + [(-30.0, 30.0)] * K
    )
    offset = optimum.x[1:] - optimum.x[1:].mean()
    return np.exp(optimum.x[:1]), offset
