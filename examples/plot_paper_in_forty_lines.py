"""
The paper in forty lines
========================

Entangled Kernel Learning (Huusari and Kadri, 2021) with NumPy alone: features, alignment, steepest
ascent on the sphere, ridge regression, partial trace. It forms matrices of n p rows, so it is for
small tables. ``EntangledKernelRidge(solver="ascent")`` gives the same numbers from second moments.
"""

# %%
# Features
# --------
# Sixty wines, three targets. Twelve Nystroem features of a Gaussian kernel,
# phi(x) = K_mm^(-1/2) k_m(x). Features and targets are centred, as with an intercept.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

from entangled_kernels import EntangledKernelRidge

wine = load_wine(as_frame=True).data.sample(frac=1.0, random_state=0)
targets = ["total_phenols", "flavanoids", "proline"]
X, Y = (
    np.array((part - part.mean()) / part.std())
    for part in (wine.drop(columns=targets), wine[targets])
)


def gaussian(X, Z, gamma=0.05):
    return np.exp(-gamma * np.sum((X[:, None] - Z) ** 2, axis=2))


values, vectors = np.linalg.eigh(gaussian(X[:12], X[:12]))
Phi_all = gaussian(X, X[:12]) @ (vectors / np.sqrt(values)) @ vectors.T  # (178, m)
Phi_new, Y_new = Phi_all[60:], Y[60:]
mean_phi, mean_y = Phi_all[:60].mean(axis=0), Y[:60].mean(axis=0)
Phi, Y = Phi_all[:60] - mean_phi, Y[:60] - mean_y
(n, m), p = Phi.shape, Y.shape[1]

# %%
# Alignment, and its gradient
# ---------------------------
# The kernel is K(x, z) = sum_i M_i phi(x) phi(z)^T M_i^T. Column i of Q is vec(M_i), so the Gram
# matrix is G = (Phi kron I) Q Q^T (Phi kron I)^T. The objective is the mean of two cosines: of G
# with y y^T, and of its partial trace over the outputs with Y Y^T.
Psi, y = np.kron(Phi, np.eye(p)), Y.reshape(-1)  # (n p, m p) and (n p,)


def alignment(Q, mix=0.5):
    G = (Psi @ Q) @ (Psi @ Q).T
    traced = np.einsum("iojo->ij", G.reshape(n, p, n, p))  # partial trace, (n, n)
    value, pull = 0.0, 0.0
    for weight, A, T, lift in (
        (1.0 - mix, traced, Y @ Y.T, lambda A: np.kron(A, np.eye(p))),
        (mix, G, np.outer(y, y), lambda A: A),
    ):
        size, norm = np.linalg.norm(A), np.linalg.norm(T)
        cosine = np.sum(A * T) / (size * norm)
        value += weight * cosine
        pull = pull + weight * lift(T / (size * norm) - cosine * A / size**2)
    return value, 2.0 * Psi.T @ (pull @ (Psi @ Q))


# %%
# Ascent on the sphere
# --------------------
# The start is the plain kernel, D = Q Q^T = I / (m p). A step along the gradient is divided by its
# norm, and halved until the objective rises enough. Early stopping regularises.


def ascend(n_steps):
    Q, step = np.eye(m * p) / np.sqrt(m * p), 0.0
    value, gradient = alignment(Q)
    history = [value]
    for _ in range(n_steps):
        slope = np.linalg.norm(gradient)
        step = 2.0 * step or 1.0 / slope
        while alignment(Q + step * gradient)[0] < value + 1e-4 * step * slope**2:
            step /= 2.0
        Q = Q + step * gradient
        Q /= np.linalg.norm(Q)
        value, gradient = alignment(Q)
        history.append(value)
    return Q, history


Q, history = ascend(12)
print(f"alignment {history[0]:.3f} at the start, {history[-1]:.3f} after {len(history) - 1} steps")

# %%
# Ridge regression, with the kernel and with its partial trace
# ------------------------------------------------------------
# D is scaled so that G has the trace of the plain kernel's Gram matrix; alpha then has the meaning
# of alpha in `sklearn.kernel_ridge.KernelRidge`.

alpha, D = 1.0, Q @ Q.T
D *= p * np.sum(Phi**2) / np.trace(Psi @ D @ Psi.T)
dual = np.linalg.solve(Psi @ D @ Psi.T + alpha * np.eye(n * p), y)
entangled = np.kron(Phi_new - mean_phi, np.eye(p)) @ D @ Psi.T @ dual
entangled = entangled.reshape(-1, p) + mean_y

S = np.einsum("jolo->jl", D.reshape(m, p, m, p)) / p  # partial trace of D
dual = np.linalg.solve(Phi @ S @ Phi.T + alpha * np.eye(n), Y)
traced = (Phi_new - mean_phi) @ S @ Phi.T @ dual + mean_y

# %%
# The same with the library
# -------------------------

differences = {}
settings = {"alpha": alpha, "shrinkage": 0.0, "solver": "ascent", "solver_params": {"max_iter": 12}}
for kind, prediction in (("entangled", entangled), ("partial_trace", traced)):
    model = EntangledKernelRidge(prediction=kind, **settings).fit(Phi + mean_phi, Y + mean_y)
    differences[kind] = np.abs(model.predict(Phi_new) - prediction).max()
    error = np.mean((prediction - Y_new) ** 2) / Y_new.var()
    print(f"{kind}: nMSE {error:.3f}, largest difference from the library {differences[kind]:.0e}")
assert max(differences.values()) < 1e-8
assert np.allclose(model.alignment_history_, history)

figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
axes[0].plot(model.alignment_history_, label="library")
axes[0].plot(history, "o", fillstyle="none", label="forty lines")
axes[0].axhline(model.largest_alignment_, linestyle=":", color="0.3", label="largest there is")
axes[0].set(title="alignment", xlabel="step")
axes[0].legend()
for column, name in enumerate(targets):
    axes[1].plot(Y_new[:, column], entangled[:, column], ".", label=name)
axes[1].set(title="new rows", xlabel="measured, in deviations", ylabel="predicted")
axes[1].legend()
plt.show()
