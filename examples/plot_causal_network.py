"""
What drives what?
=================

Eight sensors of a plant are read once a minute, and some drive others. `OperatorKernelVAR` learns a
nonlinear model of the next reading from the last one, which shows the influences between sensors: a
network of Granger causes. A linear model is enough where influences rise with their cause, but not
where they rise and fall. Two simulated plants with known networks show both.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.metrics import roc_auc_score

from entangled_kernels import OperatorKernelVAR

P, STEPS = 8, 200
EFFECTS = {"rising": np.tanh, "rising and falling": lambda x: 2 * np.exp(-2 * x**2) - 1}
rng = np.random.default_rng(3)
truth = np.zeros((P, P))
for sensor in range(P):
    others = [other for other in range(P) if other != sensor]
    truth[sensor, rng.choice(others, 2, replace=False)] = rng.choice([-1, 1], 2)


def simulate(effect):
    """Readings of a plant, where every sensor is driven by two others."""
    series = np.zeros((STEPS, P))
    for step in range(STEPS - 1):
        series[step + 1] = (
            0.3 * series[step] + effect(series[step]) @ truth.T + 0.5 * rng.normal(size=P)
        )
    return series


# %% Three networks for each plant: of the two kernels, and the sizes of the coefficients of a
# linear model.

elsewhere = ~np.eye(P, dtype=bool)
networks, scores = {}, {}
for plant, effect in EFFECTS.items():
    series = simulate(effect)
    scaled = (series - series.mean(axis=0)) / series.std(axis=0)
    by_method = {
        "linear": np.abs(RidgeCV(np.logspace(-2, 3, 11)).fit(scaled[:-1], scaled[1:]).coef_),
        "hadamard": OperatorKernelVAR("hadamard").fit(series).granger_,
        "additive": OperatorKernelVAR("additive").fit(series).granger_,
    }
    for name, network in by_method.items():
        networks[plant, name] = network
        scores[plant, name] = roc_auc_score(truth[elsewhere] != 0, network[elsewhere])
        print(f"{plant:<20}{name:<10}AUROC of the arrows {scores[plant, name]:.3f}")

# %% Columns are sensors, rows the sensors that they drive. Rings mark the true network, dark cells
# the learned one. The diagonal, the past of the sensor itself, is left out.

figure, axes = plt.subplots(
    2, 3, figsize=(9.5, 6.6), layout="constrained", sharex=True, sharey=True
)
rows, columns = np.nonzero(truth)
for ax, ((plant, name), network) in zip(axes.flat, networks.items(), strict=True):
    shown = np.where(elsewhere, network, np.nan)
    image = ax.imshow(shown / np.nanmax(shown), cmap="Blues", vmin=0, vmax=1)
    ax.plot(columns, rows, "o", ms=16, mfc="none", mec="C1", mew=1.3)
    ax.set_title(f"{name}: AUROC {scores[plant, name]:.2f}")
    ax.set(xticks=range(P), yticks=range(P))
    ax.spines[:].set_visible(False)
for ax, plant in zip(axes[:, 0], EFFECTS, strict=True):
    ax.set_ylabel(f"{plant} effects\ndriven sensor")
for ax in axes[-1]:
    ax.set_xlabel("driving sensor")
figure.colorbar(image, ax=axes, shrink=0.6, label="influence, share of the largest")
plt.show()
