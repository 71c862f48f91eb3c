"""Slow, obvious versions: every matrix is formed, every definition is written out.

Index conventions as in the package: block row sample * p + output, and D row feature * p + output.
"""

import numpy as np


def stack(kraus):
    """Columns vec(M_i), one entry at a time."""
    r, p, m = kraus.shape
    Q = np.zeros((m * p, r))
    for i in range(r):
        for f in range(m):
            for o in range(p):
                Q[f * p + o, i] = kraus[i, o, f]
    return Q


def learned_matrix(kraus, metric):
    """D of a fitted estimator."""
    p = kraus.shape[1]
    D = stack(kraus) @ stack(kraus).T
    return D if metric is None else D + np.kron(metric, np.eye(p))


def gram(Phi, D, p, Z=None):
    Z = Phi if Z is None else Z
    return np.kron(Phi, np.eye(p)) @ D @ np.kron(Z, np.eye(p)).T


def block_trace(G, p):
    n = len(G) // p
    return np.array(
        [[np.trace(G[i * p : i * p + p, j * p : j * p + p]) for j in range(n)] for i in range(n)]
    )


def center_columns(Z, weight):
    return Z - weight @ Z / weight.sum()


def cosine(K, T):
    norm = np.linalg.norm(K) * np.linalg.norm(T)
    return 0.0 if norm == 0 else np.sum(K * T) / norm


def alignment(Phi, Y, D, weight=None, fit_intercept=True):
    """Partial-trace and full centred alignment from the np x np Gram matrix; weights repeat rows."""
    n, p = Y.shape
    weight = np.ones(n) if weight is None else weight
    if fit_intercept:
        Phi, Y = center_columns(Phi, weight), center_columns(Y, weight)
    root = np.sqrt(weight)
    G = gram(root[:, None] * Phi, D, p)
    H = np.eye(n) - np.outer(root, root) / weight.sum()
    Yw = root[:, None] * Y
    a1 = cosine(H @ block_trace(G, p) @ H, H @ Yw @ Yw.T @ H)
    block_root = np.repeat(root, p)
    H = np.eye(n * p) - np.outer(block_root, block_root) / (weight.sum() * p)
    y = H @ Yw.reshape(-1)
    a2 = cosine(H @ G @ H, np.outer(y, y))
    return a1, a2


def closed_form(Phi, Y, mix, target_alpha, shrinkage, weight=None, fit_intercept=True):
    """The regularised family, scaled so that the training Gram matrix has the plain kernel's trace."""
    n, p = Y.shape
    m = Phi.shape[1]
    weight = np.ones(n) if weight is None else weight
    if fit_intercept:
        Phi, Y = center_columns(Phi, weight), center_columns(Y, weight)
    C, B = Phi.T @ np.diag(weight) @ Phi, Phi.T @ np.diag(weight) @ Y
    W = np.linalg.pinv(C + target_alpha * np.trace(C) / m * np.eye(m), hermitian=True) @ B
    w = W.reshape(-1)
    learned = (1 - mix) * np.kron(W @ W.T, np.eye(p)) / (p * np.sum(W**2)) + mix * np.outer(
        w, w
    ) / np.sum(W**2)
    return rescale(shrink(learned, shrinkage), C, p)


def shrink(D, shrinkage):
    return shrinkage * np.eye(len(D)) / len(D) + (1 - shrinkage) * D / np.trace(D)


def rescale(D, C, p):
    return D * p * np.trace(C) / np.trace(np.kron(C, np.eye(p)) @ D)


def partial_trace_kernel(D, p):
    """(S / p) kron I_p with S the trace of D over the outputs."""
    m = len(D) // p
    S = np.einsum("aobo->ab", D.reshape(m, p, m, p))
    return np.kron(S / p, np.eye(p))


def ridge_predict(Phi, Y, D, alpha, Z, weight=None, fit_intercept=True):
    """Predictions at Z from the np x np system; weights multiply squared errors."""
    n, p = Y.shape
    weight = np.ones(n) if weight is None else weight
    mean_phi, mean_y = np.zeros(Phi.shape[1]), np.zeros(p)
    if fit_intercept:
        mean_phi, mean_y = weight @ Phi / weight.sum(), weight @ Y / weight.sum()
    root = np.sqrt(weight)
    Pw, Yw = root[:, None] * (Phi - mean_phi), root[:, None] * (Y - mean_y)
    dual = np.linalg.solve(gram(Pw, D, p) + alpha * np.eye(n * p), Yw.reshape(-1))
    return mean_y + (gram(Z - mean_phi, D, p, Pw) @ dual).reshape(-1, p)


def leading_directions(Phi, Y, A, alpha, rank, weight=None, fit_intercept=True):
    """Leading eigenvectors (p, r) of Y^T K (K + alpha I)^-1 Y for the scalar kernel K = Phi A Phi^T."""
    weight = np.ones(len(Y)) if weight is None else weight
    if fit_intercept:
        Phi, Y = center_columns(Phi, weight), center_columns(Y, weight)
    root = np.sqrt(weight)[:, None]
    K, Y = root * Phi @ A @ (root * Phi).T, root * Y
    form = Y.T @ K @ np.linalg.solve(K + alpha * np.eye(len(K)), Y)
    return np.linalg.eigh((form + form.T) / 2)[1][:, -rank:]


def reduced_rank_predict(Phi, Y, A, alpha, rank, Z, weight=None, fit_intercept=True):
    """Kernel ridge with phi^T A phi, and the predictions less the means projected on few directions."""
    p = Y.shape[1]
    V = leading_directions(Phi, Y, A, alpha, rank, weight, fit_intercept)
    full = ridge_predict(Phi, Y, np.kron(A, np.eye(p)), alpha, Z, weight, fit_intercept)
    mean = 0.0
    if fit_intercept:
        mean = Y.mean(axis=0) if weight is None else weight @ Y / weight.sum()
    return mean + (full - mean) @ V @ V.T


def posterior_covariance(Phi, D, alpha, Z, p, fit_intercept=True):
    """Blocks (t, p, p) of K(z, z) - K(z, X) (G + alpha I)^-1 K(X, z)."""
    mean_phi = Phi.mean(axis=0) if fit_intercept else 0.0
    Phi, Z = Phi - mean_phi, Z - mean_phi
    cross = gram(Z, D, p, Phi)
    joint = gram(Z, D, p) - cross @ np.linalg.solve(
        gram(Phi, D, p) + alpha * np.eye(len(Phi) * p), cross.T
    )
    return np.stack([joint[i * p : i * p + p, i * p : i * p + p] for i in range(len(Z))])


def hat_matrix(Phi, D, alpha, p, fit_intercept=True):
    Phi = Phi - Phi.mean(axis=0) if fit_intercept else Phi
    G = gram(Phi, D, p)
    return G @ np.linalg.inv(G + alpha * np.eye(len(G)))


class DenseAscent:
    """Steepest ascent as published: the centred np x np matrices are formed at every trial step.

    ``centre`` says how: "products" multiplies by the centring matrices, as the definition reads;
    "means" subtracts row and column means, which is quicker.
    """

    def __init__(self, Phi, Y, mix, fit_intercept=True, centre="products"):
        if fit_intercept:
            Phi, Y = Phi - Phi.mean(axis=0), Y - Y.mean(axis=0)
        n, p = Y.shape
        self.Phi, self.mix, self.centre = Phi, mix, centre
        self.H = {size: np.eye(size) - 1.0 / size for size in (n, n * p)}
        self.P = np.kron(Phi, np.eye(p))
        self.T1, self.T2 = (
            self.centred(Y @ Y.T),
            self.centred(np.outer(Y.reshape(-1), Y.reshape(-1))),
        )
        self.n1, self.n2 = np.linalg.norm(self.T1), np.linalg.norm(self.T2)

    def centred(self, G):
        if self.centre == "products":
            return self.H[len(G)] @ G @ self.H[len(G)]
        return G - G.mean(axis=0) - G.mean(axis=1)[:, None] + G.mean()

    def evaluate(self, Q):
        """Objective, and the centred matrices for the gradient."""
        PQ, R = self.P @ Q, Q.reshape(self.Phi.shape[1], -1)
        G, K = self.centred(PQ @ PQ.T), self.centred(self.Phi @ R @ R.T @ self.Phi.T)
        a1 = np.sum(K * self.T1) / (np.linalg.norm(K) * self.n1)
        a2 = np.sum(G * self.T2) / (np.linalg.norm(G) * self.n2)
        return (1 - self.mix) * a1 + self.mix * a2, (G, K)

    def gradient(self, Q, matrices):
        G, K = matrices
        norm_G, norm_K = np.linalg.norm(G), np.linalg.norm(K)
        inner_G = self.T2 / norm_G - np.sum(G * self.T2) * G / norm_G**3
        inner_K = self.T1 / norm_K - np.sum(K * self.T1) * K / norm_K**3
        full = 2 * self.P.T @ (inner_G @ (self.P @ Q)) / self.n2
        traced = 2 * self.Phi.T @ inner_K @ self.Phi @ Q.reshape(self.Phi.shape[1], -1) / self.n1
        return (1 - self.mix) * traced.reshape(Q.shape) + self.mix * full

    def run(self, Q, n_steps, sufficient_increase=1e-4):
        Q = Q / np.linalg.norm(Q)
        step = None
        value, matrices = self.evaluate(Q)
        history = [value]
        for _ in range(n_steps):
            gradient = self.gradient(Q, matrices)
            slope = np.sum(gradient**2)
            step = 1 / np.sqrt(slope) if step is None else 2 * step
            while True:
                trial = Q + step * gradient
                trial /= np.linalg.norm(trial)
                trial_value, matrices = self.evaluate(trial)
                if trial_value >= value + sufficient_increase * step * slope:
                    break
                step /= 2
            Q, value = trial, trial_value
            history.append(value)
        return Q, np.array(history)
