"""Regression and classification from several views of the same rows; views may be missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d

from ..convex import embed_view, learn_multiview, reduce_problem, view_coefficients
from ..doc_links import DocLinkMixin
from ..linalg import Array
from ..parameters import (
    check_flag,
    check_numeric_columns,
    check_positive,
    check_range,
    check_solver_params,
    validate_rows,
)
from .base import MultiTargetRegressor, check_labels, check_overflow
from .kernel_parts import ColumnKernel, resolve_kernels, store_certificate

__all__ = ["MultiViewKernelClassifier", "MultiViewKernelRidge"]


class MultiViewLearner(BaseEstimator):
    """Base class of regression and classification from several views."""

    n_iter_: int

    def __init__(
        self,
        views: Any = None,
        *,
        alpha: float = 0.1,
        eta: float = 1.0,
        sparse: bool = False,
        normalize: bool = True,
        fit_intercept: bool = True,
        solver_params: dict[str, Any] | None = None,
    ) -> None:
        self.views = views
        self.alpha = alpha
        self.eta = eta
        self.sparse = sparse
        self.normalize = normalize
        self.fit_intercept = fit_intercept
        self.solver_params = solver_params

    def _check_parameters(self) -> None:
        for name in ("alpha", "eta"):
            check_positive(name, getattr(self, name))
        for name in ("sparse", "normalize", "fit_intercept"):
            check_flag(name, getattr(self, name))

    def _check_rows(self, X: Any, *, reset: bool) -> Array:
        """Rows with NaN where a view is missing."""
        if reset:
            check_numeric_columns(X)
        allowed: Any = {"dtype": np.float64, "ensure_all_finite": "allow-nan"}
        rows = np.asarray(validate_rows(self, X, reset=reset, **allowed))
        check_range("X", np.nan_to_num(rows), 0.0)
        return rows

    def _learn_views(self, rows: Array, Y: Array, weight: Array | None) -> None:
        """Learn from rows and targets (n, p), and store what was learned in the estimator."""
        views, learned = [], []
        row_weight = weight.max(axis=1) if weight is not None and weight.ndim == 2 else weight
        for given in self._resolve_views(rows.shape[1]):
            present = _present(given, rows)
            if not present.any():
                raise ValueError(
                    f"view {given.name!r} is missing in every row of X; leave it out of views"
                )
            part = given.fit(rows[present], Y[present], None if weight is None else weight[present])
            kernel = part.part(rows[present])
            view, share = embed_view(kernel, present, row_weight, centred=bool(self.fit_intercept))
            views.append(view)
            learned.append((part, kernel, share, present))
        problem = reduce_problem(
            views, Y, weight, centred=self.fit_intercept, normalized=self.normalize
        )
        settings = check_solver_params(self.solver_params)
        result = learn_multiview(
            problem, float(self.alpha), float(self.eta), sparse=self.sparse, **settings
        )
        self.X_fit_, self._parts = rows, [part for part, *_ in learned]
        self.view_names_ = [part.name for part in self._parts]
        self.view_weights_ = result.weights
        self.output_kernel_ = np.eye(Y.shape[1]) if self.sparse else result.L
        self.dual_coef_, self.intercept_ = result.C, result.intercept
        scaled = result.T / problem.scales[:, None, None]
        self._coefs = [
            view_coefficients(kernel, share, result.C[present] @ T)
            for (_, kernel, share, present), T in zip(learned, scaled, strict=True)
        ]
        store_certificate(self, result, self.solver_params, "the metric between views has")
        self.n_iter_ = max(self.n_iter_, 1)

    def _predict_values(self, X: Any) -> Array:
        """Predictions (n, p); a missing view adds nothing."""
        check_is_fitted(self)
        rows = self._check_rows(X, reset=False)
        values = np.tile(self.intercept_, (len(rows), 1))
        for part, (coef, offset) in zip(self._parts, self._coefs, strict=True):
            present = _present(part, rows)
            if present.any():
                known = rows[present]
                if part.is_features:
                    images = part.features(known)
                else:
                    images = part.gram(known, self.X_fit_[_present(part, self.X_fit_)])
                values[present] += images @ coef + offset
        return values

    def _resolve_views(self, n_columns: int) -> list[ColumnKernel]:
        """Views as kernels on columns."""
        views = self.views
        if views is None:
            views = {"all": slice(None)}
        if isinstance(views, Mapping):
            views = [(str(name), "rbf", columns) for name, columns in views.items()]
        try:
            return resolve_kernels(views, n_columns, getattr(self, "feature_names_in_", None))
        except ValueError as error:
            raise ValueError(str(error).replace("kernels", "views", 1)) from None


class MultiViewKernelRidge(MultiViewLearner, MultiTargetRegressor):
    """Regression from several views with a metric between them, MVML, with missing views.

    Parameters
    ----------
    views : dict, list or None, default=None
        Views of the rows: a dictionary of named groups of columns, each of which gets a Gaussian
        kernel, or a list of tuples ``(name, kernel, columns)`` as in `MultipleKernelRidge`. None is
        one view of all columns. A row whose columns of a view are all NaN lacks that view.
    alpha : float, default=0.1
        Penalty of the coefficients, lambda in the paper.
    eta : float, default=1.0
        Penalty of the metric between views.
    sparse : bool, default=False
        Whether the metric is sparse by blocks, so that views that are of no use drop out.
    normalize : bool, default=True
        Whether the kernel of every view is divided by the mean of its diagonal (after centring).
    fit_intercept : bool, default=True
    solver_params : dict or None, default=None
        ``max_iter`` (1000) and ``tol`` (1e-3), as in `OutputKernelRidge`.

    Attributes
    ----------
    view_names_ : list of str
    view_weights_ : ndarray of shape (m,)
        Weights of the views; ones unless ``sparse``.
    output_kernel_ : ndarray of shape (p, p)
        Kernel between targets; the identity if ``sparse``.
    duality_gap_, objective_ : float
        Of the convex problem that this is; see `entangled_kernels.convex.learn_multiview`.
    dual_coef_ : ndarray of shape (n_samples, p)
    intercept_ : ndarray of shape (p,)
    X_fit_ : ndarray of shape (n_samples, n_features)
    n_iter_ : int
    converged_ : bool
    stop_reason_ : str
    n_features_in_, feature_names_in_, target_names_

    Notes
    -----
    The objective of multi-view metric learning (Huusari, Kadri and Capponi 2018), at its global
    minimum: output kernel learning on the sum of the views' kernels, or if ``sparse`` multiple
    kernel learning. A view k_v that a row lacks has k_v = 0 between that row and all others.

    Time m n^2 for the kernels, then n^3 for an eigendecomposition; if ``sparse``, for every
    evaluation.

    References
    ----------
    R. Huusari, H. Kadri and C. Capponi, "Multi-view metric learning in vector-valued kernel
    spaces", AISTATS 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from entangled_kernels import MultiViewKernelRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 4))
    >>> y = np.sin(X[:, 0]) + X[:, 2]
    >>> X[:10, 2:] = np.nan  # ten rows lack the second view
    >>> model = MultiViewKernelRidge({"first": [0, 1], "second": [2, 3]}).fit(X, y)
    >>> bool(model.score(X[10:], y[10:]) > 0.9)
    True
    """

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            NaN in all columns of a view where a row lacks it.
        y : array-like or data frame of shape (n_samples, n_outputs) or (n_samples,)
            NaN is a missing target; rows without any target are left out, and every target has a
            value in some row.
        sample_weight : float or array-like of shape (n_samples,) or (n_samples, p), optional
            A weight of zero is a missing target.
        """
        self._check_parameters()
        targets = self._take_targets(y, missing=True)
        rows = self._check_rows(X, reset=True)
        used, Y, weight = self._measured(rows, targets, sample_weight)
        self._learn_views(rows if used.all() else rows[used], Y, weight)
        return self

    def predict(self, X: Any) -> Any:
        """Predict the targets, (n, p), or (n,) when y was one-dimensional."""
        return self._finish(self._predict_values(X), X)


class MultiViewKernelClassifier(ClassifierMixin, DocLinkMixin, MultiViewLearner):
    """Classification from several views with a metric between them, MVML, with missing views.

    Regression of one indicator to a class, of values 1 and -1, as `MultiViewKernelRidge`; the
    largest wins.

    Parameters
    ----------
    views, alpha, eta, sparse, normalize, fit_intercept, solver_params
        As in `MultiViewKernelRidge`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    view_names_, view_weights_, output_kernel_, duality_gap_, objective_, dual_coef_, intercept_,
    X_fit_, \
n_iter_, converged_, stop_reason_, n_features_in_, feature_names_in_
        As in `MultiViewKernelRidge`, of the indicators.

    Notes
    -----
    Time and objective are those of `MultiViewKernelRidge`.

    Examples
    --------
    >>> import numpy as np
    >>> from entangled_kernels import MultiViewKernelClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(90, 4))
    >>> y = np.array(["low", "middle", "high"])[np.digitize(X[:, 0] + X[:, 2], [-0.7, 0.7])]
    >>> model = MultiViewKernelClassifier({"first": [0, 1], "second": [2, 3]}).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from rows with their classes.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            NaN in all columns of a view where a row lacks it.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,) or float, optional
        """
        self._check_parameters()
        rows = self._check_rows(X, reset=True)
        labels, weight = check_labels(self, rows, y, sample_weight)
        self.classes_, codes = np.unique(column_or_1d(labels), return_inverse=True)
        # One indicator is enough for two classes.
        shown = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        Y = np.column_stack([np.where(codes == number, 1.0, -1.0) for number in shown])
        self._learn_views(rows, Y, weight)
        return self

    def decision_function(self, X: Any) -> Array:
        """Predicted indicators, (n, n_classes), or (n,) of the second class when there are two."""
        values = self._predict_values(X)
        check_overflow(values)
        return values[:, 0] if values.shape[1] == 1 else values

    def predict(self, X: Any) -> Any:
        """Predict the classes, (n,)."""
        values = self.decision_function(X)
        codes = (values > 0.0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        return self.classes_[codes]


def _present(part: ColumnKernel, rows: Array) -> NDArray[np.bool_]:
    """Which rows have the view; an error where a row has some of its columns only."""
    missing = np.isnan(rows[:, part.columns])
    some = missing.any(axis=1) & ~missing.all(axis=1)
    if some.any():
        raise ValueError(
            f"X has NaN in some columns of view {part.name!r} only, first in row "
            f"{int(np.flatnonzero(some)[0])}; a row has all columns of a view or, as NaN, none: "
            f"impute the others"
        )
    return np.asarray(~missing.all(axis=1))
