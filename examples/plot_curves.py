"""
Curves in, curves out
=====================

A spectrum or a profile is a target of many columns that go together. No basis is needed for the
targets: more targets than rows are handled exactly as they are. The inputs are curves too, and go
through principal components.

The model is shown a heating profile and predicts the response of a sensor, of which later three
points are measured.
"""

# %%
# Simulated curves
# ----------------
# The input is a smooth profile of 50 points with noise. The response, at 60 points, is the profile
# after a delay that smears it, and saturates. Two smooth disturbances do not depend on the input,
# and the sensor is noisy.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from entangled_kernels import EntangledKernelRidgeCV

rng = np.random.default_rng(0)
n_train, n_new = 80, 200
time_in, time_out = np.linspace(0, 1, 50), np.linspace(0, 1, 60)


def bumps(time, centres, width):
    return np.exp(-(((time - centres[:, None]) / width) ** 2) / 2)


sizes = rng.normal(size=(n_train + n_new, 4))
profile = sizes @ bumps(time_in, np.array([0.15, 0.4, 0.6, 0.85]), 0.08)
delayed = sizes @ bumps(time_out, np.array([0.25, 0.5, 0.7, 0.95]), 0.13)
moods = 0.4 * rng.normal(size=(n_train + n_new, 2)) @ bumps(time_out, np.array([0.35, 0.7]), 0.2)
X = profile + 0.05 * rng.normal(size=profile.shape)
Y = np.tanh(delayed) + moods + 0.1 * rng.normal(size=delayed.shape)
X_new, Y_new = X[n_train:], Y[n_train:]
X, Y = X[:n_train], Y[:n_train]

# %%
# Fit
# ---
# The feature map takes eight principal components of the inputs, and Gaussian features of these.
# The targets are not transformed.

features = make_pipeline(
    PCA(8, random_state=0), StandardScaler(), Nystroem(gamma=0.03, n_components=30, random_state=0)
)
model = EntangledKernelRidgeCV(features, cv=KFold(5)).fit(X, Y)

# %%
# Intervals
# ---------
# They are calibrated on held-out rows, so they include the disturbances and the noise.

mean = model.predict(X_new)
lower, upper = model.predict_interval(X_new, 0.9)
inside = np.mean((lower <= Y_new) & (Y_new <= upper))
error = np.mean((mean - Y_new) ** 2) / Y_new.var()
print(f"nMSE {error:.3f}, {100 * inside:.0f}% of the points in 90% intervals")

# %%
# Three points are measured
# -------------------------
# Three measured points show the disturbances, and so improve predictions at all other times.

measured = [21, 33, 45]
given = np.full(Y_new.shape, np.nan)
given[:, measured] = Y_new[:, measured]
after = model.predict(X_new, given=given)
lower_after, upper_after = model.predict_interval(X_new, 0.9, given=given)
rest = np.isnan(given)
inside_after = np.mean(((lower_after <= Y_new) & (Y_new <= upper_after))[rest])
share = np.mean((after - Y_new)[rest] ** 2) / np.mean((mean - Y_new)[rest] ** 2)
print(
    f"error of the other points: {share:.2f} of what it was, {100 * inside_after:.0f}% in 90% intervals"
)

# %%
# The share of the variance that measuring the middle of the curve removes, some inputs, and a new
# curve before and after three of its points are measured.

tells = model.information_[measured[1]]
figure, axes = plt.subplots(2, 2, figsize=(9.5, 6.4), layout="constrained")
axes[0, 0].plot(time_out, tells)
axes[0, 0].axvline(time_out[measured[1]], color="#D55E00", linestyle=":")
axes[0, 0].set(title="share of the variance that one point removes", xlabel="time")
axes[0, 1].plot(time_in, X_new[:3].T, color="#999999")
axes[0, 1].plot(time_in, X_new[0], color="#0072B2", label="of the curve below")
axes[0, 1].set(title="inputs: profiles", xlabel="time")
axes[0, 1].legend(frameon=False)
for axis, title, centre, ends in (
    (axes[1, 0], "response, 90% intervals", mean, (lower, upper)),
    (axes[1, 1], "the same after three points are measured", after, (lower_after, upper_after)),
):
    axis.fill_between(time_out, ends[0][0], ends[1][0], color="#56B4E9", alpha=0.4, linewidth=0)
    axis.plot(time_out, centre[0], color="#0072B2", label="predicted")
    axis.plot(time_out, Y_new[0], ".", color="#333333", markersize=3, label="observed")
    axis.set(title=title, xlabel="time", ylim=(-2.2, 2.2))
axes[1, 1].plot(time_out[measured], Y_new[0, measured], "o", color="#D55E00", label="measured")
axes[1, 1].legend(frameon=False)
plt.show()
