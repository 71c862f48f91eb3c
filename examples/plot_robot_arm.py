"""
Torques of a robot arm
======================

To move an arm along a path, a controller must know the torques of its joints beforehand. The
equations of motion are known for an ideal arm; friction and loads are not, so torques are learned
from recorded movements. The arm here has two joints and is simulated, with friction that the
equations leave out.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from entangled_kernels import ColumnWidthFeatures, EntangledKernelRidgeCV, EvidenceFeatures

M1, M2, L1, L2, GRAVITY = 2.0, 1.5, 0.6, 0.5, 9.81


def torques(q, v, a):
    """Torques of shape (n, 2) for angles, velocities and accelerations of shape (n, 2)."""
    c2, s2 = np.cos(q[:, 1]), np.sin(q[:, 1])
    h11 = M1 * L1**2 / 3 + M2 * (L1**2 + L2**2 / 3 + L1 * L2 * c2)
    h12 = M2 * (L2**2 / 3 + L1 * L2 * c2 / 2)
    h22 = M2 * L2**2 / 3
    coriolis = M2 * L1 * L2 * s2 / 2
    g2 = M2 * GRAVITY * L2 / 2 * np.cos(q.sum(axis=1))
    g1 = (M1 / 2 + M2) * GRAVITY * L1 * np.cos(q[:, 0]) + g2
    first = h11 * a[:, 0] + h12 * a[:, 1] - coriolis * (2 * v[:, 0] + v[:, 1]) * v[:, 1] + g1
    second = h12 * a[:, 0] + h22 * a[:, 1] + coriolis * v[:, 0] ** 2 + g2
    friction = np.tanh(5 * v) * [1.0, 0.5]
    return np.column_stack([first, second]) + friction


def simulate(n, rng):
    """Angles, velocities and accelerations side by side, and noisy torques."""
    q = rng.uniform(-np.pi / 2, np.pi / 2, size=(n, 2))
    v, a = 1.5 * rng.normal(size=(n, 2)), 3 * rng.normal(size=(n, 2))
    T = torques(q, v, a)
    return np.column_stack([q, v, a]), T + 0.2 * rng.normal(size=T.shape)


def nmse(Y, prediction):
    return np.mean(np.mean((Y - prediction) ** 2, axis=0) / Y.var(axis=0))


# %%
# Learning curves: one draw for every number of recorded rows.

METHODS = {
    "ridge": lambda: make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 3, 13))),
    "extra trees": lambda: ExtraTreesRegressor(random_state=0),
    "entangled": lambda: EntangledKernelRidgeCV(
        [EvidenceFeatures(random_state=0), ColumnWidthFeatures(random_state=0)], random_state=0
    ),
}
sizes = [25, 50, 100, 200]
X_test, Y_test = simulate(1000, np.random.default_rng(100))
errors = {name: [] for name in METHODS}
for n in sizes:
    X, Y = simulate(n, np.random.default_rng(0))
    models = {name: make().fit(X, Y) for name, make in METHODS.items()}
    for name, model in models.items():
        errors[name].append(nmse(Y_test, model.predict(X_test)))
for name, values in errors.items():
    print(f"{name:<12}", np.round(values, 3))

# %% Torques are smooth in angles and velocities, which suits kernels: with a hundred rows the error
# is a fraction of that of trees. On the right, both torques along a new movement, with the last
# model.

time = np.linspace(0, 3, 200)
frequency = 2 * np.pi / 3
swing = np.array([1.0, 0.7])
q = swing * np.sin(frequency * time[:, None] * [1, 2])
v = swing * frequency * np.array([1, 2]) * np.cos(frequency * time[:, None] * [1, 2])
a = -swing * (frequency * np.array([1, 2])) ** 2 * np.sin(frequency * time[:, None] * [1, 2])
path = np.column_stack([q, v, a])
mean, std = models["entangled"].predict(path, return_std=True)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for (name, values), mark in zip(errors.items(), ["^:", "s--", "o-"], strict=True):
    left.loglog(sizes, values, mark, label=name)
left.set(xlabel="recorded rows", ylabel="nMSE, mean of both torques", title="Learning curves")
left.set_xticks(sizes, sizes)
left.minorticks_off()
left.legend()
for joint, colour in enumerate(["C0", "C1"]):
    right.fill_between(
        time,
        mean[:, joint] - 2 * std[:, joint],
        mean[:, joint] + 2 * std[:, joint],
        color=colour,
        alpha=0.2,
        lw=0,
    )
    right.plot(time, mean[:, joint], color=colour, label=f"joint {joint + 1}, predicted")
    right.plot(time, torques(q, v, a)[:, joint], "k--", lw=1, label="true" if joint else None)
right.set(xlabel="seconds", ylabel="torque, N m", title="A movement (bands: two deviations)")
right.legend()
plt.show()
