"""Does the relation between targets depend on the input? A covariance of residuals that turns with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, eigh, solve_triangular
from scipy.optimize import minimize

from ..linalg import Array
from ..threads import SMALL_MATRIX, one_thread
from .row_likelihood import RowLikelihood, RowsWithBlanks, row_likelihood

__all__ = ["LARGEST", "Relation", "fit_relation", "relation_of_strength"]

Estimate = Callable[[Array, Array], Array]

# Above this many targets the rows cannot tell how their relation turns.
LARGEST = 64
RANKS = (1, 2)
# Of the strength above which the constant relation is a maximum of the penalised likelihood.
STRENGTHS = (0.8, 0.6, 0.45, 0.33, 0.24, 0.16, 0.1, 0.05)
N_FOLDS = 5
# "auto" asks for gains above this many of their standard errors, in log likelihood and in squared error.
SURE_LIKELIHOOD = 1.0
SURE_ERROR = 1.5
TINY = np.finfo(float).tiny


@dataclass(frozen=True, eq=False)
class Relation:
    """Covariance of the targets of a row with features u: Psi + sum_i M_i u u^T M_i^T.

    It is K(x, x) of an entangled kernel with Kraus operators M_i, beside a part that all rows share. The
    first entry of u is a one, so the first column of each M_i belongs to no feature.

    Attributes
    ----------
    psi : ndarray of shape (p, p)
    operators : ndarray of shape (r, p, q + 1)

    Examples
    --------
    >>> import numpy as np
    >>> turning = Relation(psi=np.eye(2), operators=np.array([[[1.0, 0.0], [0.0, 1.0]]]))
    >>> U = np.array([[-1.0], [0.0], [1.0]])
    >>> spread = turning.spread(U)
    >>> (turning.psi + spread @ spread.transpose(0, 2, 1))[:, 0, 1]
    array([-1.,  0.,  1.])
    """

    psi: Array
    operators: Array

    def spread(self, U: Array) -> Array:
        """The vectors M_i u of every row, (n, p, r): the covariance is psi + spread @ spread^T."""
        return _spread(self.operators, _with_constant(U))

    def log_likelihood(self, Z: Array, U: Array) -> Array:
        """Gaussian log likelihood of the observed cells of every row, (n,); NaN is a cell not observed.

        Notes
        -----
        Time k p^3 + n p (p + r^2) for k patterns of NaN.
        """
        rows = RowsWithBlanks.of(Z, _with_constant(U), np.ones(len(Z)))
        return row_likelihood(rows, self.psi, self.spread(U)).log


def _with_constant(U: Array) -> Array:
    return np.column_stack([np.ones(len(U)), U])


def _spread(operators: Array, F: Array) -> Array:
    return np.tensordot(F, operators, axes=(1, 2)).transpose(0, 2, 1)  # (n, p, r)


def _whitening(F: Array, weight: Array) -> Array:
    """Columns (k, k') that make the weighted second moment of the features the identity."""
    values, vectors = np.linalg.eigh((F * weight[:, None]).T @ F / weight.sum())
    kept = values > 1e-10 * values[-1]
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))


def _unfold(A: Array, root: Array) -> tuple[Array, Array, Array]:
    """Root L (p, p) of psi, operators and Cholesky factor J of parameters A (r, p, k); see `_objective`."""
    J = cholesky(np.eye(len(root)) + np.sum(A @ A.transpose(0, 2, 1), axis=0), lower=True)
    L = solve_triangular(J, root.T, lower=True, trans="T").T
    return L, L @ A, J


def _objective(A: Array, rows: RowsWithBlanks, root: Array, alpha: float) -> tuple[float, Array]:
    """Penalised mean negative log likelihood of parameters A (r, p, k), and its gradient.

    Notes
    -----
    With J J^T = I + sum_i A_i A_i^T and L = root J^-1, the relation is psi = L L^T and M_i = L A_i, so that

        psi + sum_i M_i M_i^T = root J^-1 (I + sum_i A_i A_i^T) J^-T root^T = root root^T

    whatever A: the mean over rows of the covariance is the constant relation, for features whose second
    moment is the identity. The penalty is alpha/2 |A|^2 = alpha/2 sum_i tr(M_i^T psi^-1 M_i), a matrix normal
    prior of the operators relative to psi.

    The derivative of a row's log likelihood by its covariance is (s s^T - covariance^-1)/2 with s =
    covariance^-1 z; by V it is s g^T - T S^-1 with the posterior mean g of the effects, and by psi the same
    summed over rows. They go back through L, through the Cholesky factor and to A.

    Time n p (p + r k) + p^3.
    """
    p = len(root)
    L, operators, J = _unfold(A, root)
    terms = row_likelihood(rows, L @ L.T, _spread(operators, rows.F))
    weight = rows.weight[:, None, None]
    TS = terms.T @ terms.S_inverse
    by_V = weight * (terms.solved[:, :, None] * terms.effects[:, None, :] - TS)  # (n, p, r)
    removed = (weight * TS).transpose(1, 0, 2).reshape(p, -1) @ terms.T.transpose(1, 0, 2).reshape(p, -1).T
    by_psi = (rows.weight[:, None] * terms.solved).T @ terms.solved + removed
    share = np.bincount(rows.pattern, rows.weight)  # (patterns,)
    by_psi = 0.5 * (by_psi - np.tensordot(share, terms.precisions, axes=1))
    by_operators = np.tensordot(by_V, rows.F, axes=(0, 0)).transpose(1, 0, 2)  # (r, p, k)
    by_L = 2.0 * by_psi @ L + np.sum(by_operators @ A.transpose(0, 2, 1), axis=0)
    # L J = root gives by_J = -L^T by_L J^-T, and a Cholesky factor passes on J^-T half(J^T by_J) J^-1.
    inner = np.tril(J.T @ np.tril(-solve_triangular(J, by_L.T @ L, lower=True).T))
    inner[np.diag_indices(p)] *= 0.5
    passed = solve_triangular(J, inner.T, lower=True, trans="T").T
    passed = solve_triangular(J, passed, lower=True, trans="T")
    gradient = L.T @ by_operators + (passed + passed.T) @ A
    value = 0.5 * alpha * float(np.sum(A**2)) - float(rows.weight @ terms.log)
    return value, alpha * A - gradient


def _curvature(rows: RowsWithBlanks, root: Array) -> Array:
    """Second derivative of the mean log likelihood at A = 0 for one operator, (p k, p k).

    Notes
    -----
    The likelihood is even in A, so the first derivative is zero there. With s = root^T covariance^-1 z and
    B = root^T covariance^-1 root it is the mean over rows of (s s^T - B) kron (f f^T - I), and B = I where
    all cells are observed: the covariance between squares of residuals and squares of features. A strength
    alpha above its largest eigenvalue makes the constant relation a maximum of the penalised likelihood.

    Time n (p k)^2.
    """
    n, k = rows.F.shape
    p = len(root)
    terms = row_likelihood(rows, root @ root.T, np.zeros((n, p, 1)))
    s = terms.solved @ root
    products = (s[:, :, None] * rows.F[:, None, :]).reshape(n, p * k)
    weighted = rows.weight[:, None] * products
    B = root.T @ terms.precisions @ root  # (patterns, p, p)
    squares = rows.weight[:, None, None] * (rows.F[:, :, None] * rows.F[:, None, :] - np.eye(k))
    by_pattern = np.zeros((len(B), k, k))
    np.add.at(by_pattern, rows.pattern, squares)
    expected = np.tensordot(B, by_pattern, axes=(0, 0)).transpose(0, 2, 1, 3).reshape(p * k, p * k)
    own = np.kron((rows.weight[:, None] * s).T @ s, np.eye(k))
    return np.asarray(weighted.T @ products - own - expected)


@dataclass(frozen=True, eq=False)
class _Training:
    """Rows from which relations of any strength are learned, in white features."""

    rows: RowsWithBlanks
    whitening: Array  # (q + 1, k)
    root: Array  # (p, p), of the constant relation
    curvatures: Array  # (ranks,), the largest ones first
    directions: Array  # (ranks, p, k)

    @classmethod
    def of(cls, Z: Array, F: Array, weight: Array, constant: Array) -> _Training:
        try:
            root = cholesky(constant, lower=True)
        except np.linalg.LinAlgError as error:
            raise ValueError("constant must be positive definite; shrink it towards its diagonal.") from error
        whitening = _whitening(F, weight)
        rows = RowsWithBlanks.of(Z, F @ whitening, weight)
        H = _curvature(rows, root)
        wanted = min(max(RANKS), len(H))
        values, vectors = eigh(H, subset_by_index=(len(H) - wanted, len(H) - 1))
        directions = vectors.T[::-1].reshape(wanted, len(root), -1)  # (ranks, p, k)
        return cls(rows, whitening, root, values[::-1], directions)

    def path(self, rank: int, alphas: Array) -> list[Relation]:
        """Relations of decreasing strengths alpha, each started from the one before.

        Notes
        -----
        At A = 0 the gradient vanishes, so an operator leaves it along its direction of largest curvature,
        once the strength is below that curvature.
        """
        curvatures, directions = self.curvatures[:rank], self.directions[:rank]
        A = np.zeros_like(directions)
        relations = []
        with one_thread(self.rows.F.size * len(self.root) ** 2 <= SMALL_MATRIX**2):
            for alpha in alphas:
                room = np.sqrt(np.maximum(curvatures - alpha, 0.0))
                still = np.linalg.norm(A, axis=(1, 2)) < 0.03 * room
                A = np.where(still[:, None, None], 0.5 * room[:, None, None] * directions, A)
                if np.any(A):
                    A = self._maximise(A, alpha)
                L, operators, _ = _unfold(A, self.root)
                relations.append(Relation(L @ L.T, operators @ self.whitening.T))
        return relations

    def _maximise(self, A: Array, alpha: float) -> Array:
        def objective(flat: Array) -> tuple[float, Array]:
            value, gradient = _objective(flat.reshape(A.shape), self.rows, self.root, alpha)
            return value, gradient.reshape(-1)

        options = {"maxiter": 40, "ftol": 1e-6, "gtol": 1e-4}
        found = minimize(objective, A.reshape(-1), jac=True, method="L-BFGS-B", options=options)
        return np.asarray(found.x).reshape(A.shape)


def _left_out_errors(rows: RowsWithBlanks, terms: RowLikelihood) -> Array:
    """Squared error of each observed target given the other observed ones, summed over targets, (n,).

    z_a - E(z_a | the others) = s_a / P_aa with P = covariance^-1 and s = P z.
    """
    own = np.diagonal(terms.precisions, axis1=1, axis2=2)[rows.pattern]
    own = own - np.sum((terms.T @ terms.S_inverse) * terms.T, axis=2)
    errors = np.divide(terms.solved, own, out=np.zeros_like(own), where=rows.patterns[rows.pattern] > 0.0)
    return np.asarray(np.sum(errors**2, axis=1))


def _gains(
    Z: Array,
    F: Array,
    group: NDArray[Any],
    weight: Array,
    estimate: Estimate,
    alphas: Array,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """What each candidate gains over the constant relation on held-out groups.

    Gives the gain in log likelihood, and in squared error of each target given the others relative to the
    mean error with the constant relation, both of shape (ranks * strengths, groups).
    """
    names, member = np.unique(group, return_inverse=True)
    fold = rng.permutation(np.arange(len(names)) % N_FOLDS)[member]
    log = np.empty((1 + len(RANKS) * len(alphas), len(Z)))
    errors = np.empty_like(log)
    for held in range(N_FOLDS):
        test, train = fold == held, fold != held
        constant = estimate(Z[train], weight[train])
        training = _Training.of(Z[train], F[train], weight[train], constant)
        candidates = [Relation(constant, np.zeros((1, len(constant), F.shape[1])))]
        for rank in RANKS:
            candidates += training.path(rank, alphas)
        rows = RowsWithBlanks.of(Z[test], F[test], weight[test])
        for place, candidate in enumerate(candidates):
            terms = row_likelihood(rows, candidate.psi, _spread(candidate.operators, rows.F))
            log[place, test], errors[place, test] = terms.log, _left_out_errors(rows, terms)
    of_group = np.zeros((len(Z), len(names)))
    of_group[np.arange(len(Z)), member] = weight
    log, errors = log @ of_group, errors @ of_group
    return log[1:] - log[0], (errors[0] - errors[1:]) / max(errors[0].mean(), TINY)


def _check(Z: Array, U: Array, group: NDArray[Any], weight: Array, constant: Array, rule: str) -> None:
    n, p = Z.shape
    if rule not in ("entangled", "auto"):
        raise ValueError(f"rule must be 'entangled' or 'auto', got {rule!r}.")
    for name, array in (("U", U), ("group", group), ("weight", weight)):
        if len(array) != n:
            raise ValueError(f"{name} must have a row for each of the {n} rows of Z, got {len(array)}.")
    if constant.shape != (p, p):
        raise ValueError(f"constant must have shape {(p, p)} for {p} targets, got {constant.shape}.")


def relation_of_strength(
    Z: Array, U: Array, weight: Array, constant: Array, rank: int, strength: float
) -> Relation:
    """The relation of one number of operators and one of `STRENGTHS`; else as in `fit_relation`."""
    kept = ~np.all(np.isnan(Z), axis=1)
    training = _Training.of(Z[kept], _with_constant(U[kept]), weight[kept], constant)
    steps = np.array(STRENGTHS[: STRENGTHS.index(strength) + 1])
    return training.path(rank, steps * max(training.curvatures[0], TINY))[-1]


def fit_relation(
    Z: Array,
    U: Array,
    group: NDArray[Any],
    weight: Array,
    constant: Array,
    rule: str,
    estimate: Estimate,
    rng: np.random.Generator,
) -> tuple[Relation | None, dict[str, Any]]:
    """Learn how the covariance of residuals depends on the input, shrunk towards the constant one.

    Maximises over the operators M_i the penalised Gaussian likelihood of residuals z of rows with features u,

        mean log N(z; 0, psi + sum_i M_i u u^T M_i^T) - alpha/2 sum_i tr(C M_i^T psi^-1 M_i)

    with C the mean of u u^T, and psi such that the mean covariance of the rows is ``constant``. Alpha and the
    number of operators are chosen by cross-validation.

    Parameters
    ----------
    Z : ndarray of shape (n, p)
        Out-of-fold residuals over their scale, NaN where a target was not observed.
    U : ndarray of shape (n, q)
        Features, few and standardised. A constant is added.
    group : ndarray of shape (n,)
        Number of the row of the table that a residual belongs to. Folds keep its copies together.
    weight : ndarray of shape (n,)
        One over the number of copies.
    constant : ndarray of shape (p, p)
        The constant relation, positive definite.
    rule : {"entangled", "auto"}
        "auto" keeps the constant relation unless held-out rows speak against it.
    estimate : callable
        ``estimate(Z, weight)`` gives the constant relation of training rows.
    rng : Generator
        For the folds.

    Returns
    -------
    relation : Relation or None
        None keeps the constant relation, as for one target.
    diagnostics : dict
        "taken"; then, unless there are too many targets or too few rows, "rank" and "strength" (alpha over
        the largest curvature) of the best candidate, "log_likelihood", its gain for a held-out row, "error",
        the share that it removes of the squared error of targets given the others, and standard errors.

    Notes
    -----
    z = sum_i g_i M_i u + noise, with standard normal effects g_i and noise of covariance psi. Unshrunk, the
    operators follow noise. So the mean covariance is held at the constant relation, which leaves only
    deviations to be learned, and alpha draws these to zero. With alpha above the largest curvature of the
    likelihood at M = 0 the constant relation is a maximum; the path starts just below.

    Where the scale of rows depends on the input, operators that describe the scale raise the likelihood and
    misstate the relation. So "auto" asks for two gains on held-out rows: likelihood, by more than one
    standard error, and squared error of each target given the others, by more than one and a half. Of the
    candidates that have the first, the one with the least error is chosen.

    Time n p (p + r q) + p^3 for a step, and n p^2 q^2 + p^3 q^3 for a fold.

    References
    ----------
    Hoff and Niu, "A covariance regression model", Statistica Sinica 22 (2012), is r = 1 without shrinkage.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> U = rng.uniform(-1.7, 1.7, size=(200, 1))
    >>> Z = rng.normal(size=(200, 2))
    >>> Z[:, 1] = 0.5 * U[:, 0] * Z[:, 0] + np.sqrt(1 - 0.25 * U[:, 0] ** 2) * Z[:, 1]
    >>> relation, diagnostics = fit_relation(
    ...     Z, U, np.arange(200), np.ones(200), np.eye(2), "auto", lambda Z, weight: np.eye(2), rng
    ... )
    >>> spread = relation.spread(np.array([[-1.5], [1.5]]))
    >>> np.sign((relation.psi + spread @ spread.transpose(0, 2, 1))[:, 0, 1])
    array([-1.,  1.])
    """
    _check(Z, U, group, weight, constant, rule)
    kept = ~np.all(np.isnan(Z), axis=1)
    Z, U, group, weight = Z[kept], U[kept], group[kept], weight[kept]
    p, n_groups = Z.shape[1], len(np.unique(group))
    hopeless = p > LARGEST or n_groups < 2 * N_FOLDS
    if p == 1 or (hopeless and rule == "auto"):
        return None, {"taken": False}
    if hopeless:
        raise ValueError(
            f"rule='entangled' needs at most {LARGEST} targets and at least {2 * N_FOLDS} rows, got"
            f" {p} targets and {n_groups} rows; use 'auto' or the constant relation."
        )
    F = _with_constant(U)
    training = _Training.of(Z, F, weight, constant)
    alphas = np.array(STRENGTHS) * max(training.curvatures[0], TINY)
    gains = np.array(_gains(Z, F, group, weight, estimate, alphas, rng))  # (2, candidates, groups)
    (log, error), (log_se, error_se) = gains.mean(axis=2), gains.std(axis=2, ddof=1) / np.sqrt(n_groups)
    likely = log > SURE_LIKELIHOOD * log_se
    best = int(np.argmax(np.where(likely, error, -np.inf) if likely.any() else log))
    taken = rule == "entangled" or bool(likely[best] and error[best] > SURE_ERROR * error_se[best])
    place, step = divmod(best, len(alphas))
    diagnostics = {
        "taken": taken,
        "rank": RANKS[place],
        "strength": STRENGTHS[step],
        "log_likelihood": float(log[best]),
        "log_likelihood_se": float(log_se[best]),
        "error": float(error[best]),
        "error_se": float(error_se[best]),
    }
    return (training.path(RANKS[place], alphas[: step + 1])[-1] if taken else None), diagnostics
