"""
From a spectrum to concentrations
=================================

A spectrometer gives 150 absorbances in a second; the laboratory gives four concentrations in a day.
Chemists predict the second from the first by partial least squares (PLS), which is hard to beat
where absorbance is proportional to concentration. In these simulated spectra it is not: the
detector saturates, and the baseline drifts.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from entangled_kernels import ColumnWidthFeatures, EntangledKernelRidgeCV, EvidenceFeatures

waves = np.linspace(0, 1, 150)


def simulate(n, rng, saturation=1.0):
    """Spectra and concentrations of n samples: glucose, lactate, ethanol and protein of a fermenter."""
    progress = rng.uniform(size=n)
    C = np.column_stack([1.2 - progress, 0.3 + 0.4 * progress, progress**1.5, 0.5 + 0.3 * progress])
    C = np.clip(C + 0.12 * rng.normal(size=C.shape), 0, None)
    centres, widths = [0.30, 0.38, 0.55, 0.62], [0.08, 0.06, 0.10, 0.05]
    pure = np.exp(
        -((waves - np.reshape(centres, (4, 1))) ** 2) / (2 * np.reshape(widths, (4, 1)) ** 2)
    )
    absorbed = C @ pure
    baseline = rng.normal(size=(n, 2)) @ np.vstack([np.ones_like(waves), waves]) * 0.1
    seen = absorbed / (1 + saturation * absorbed) + baseline
    return seen + 0.01 * rng.normal(size=seen.shape), C


def nmse(Y, prediction):
    """Mean over concentrations of the squared error divided by the variance."""
    return np.mean(np.mean((Y - prediction) ** 2, axis=0) / Y.var(axis=0))


# %% The kernels get eight principal components of the spectra. PLS selects the number of its
# components by cross-validation.

METHODS = {
    "PLS": lambda: GridSearchCV(PLSRegression(), {"n_components": range(1, 13)}),
    "entangled": lambda: EntangledKernelRidgeCV(
        [
            make_pipeline(PCA(8, whiten=True, random_state=0), EvidenceFeatures(random_state=0)),
            make_pipeline(PCA(8, random_state=0), ColumnWidthFeatures(random_state=0)),
        ],
        random_state=0,
    ),
}
sizes = [20, 40, 80, 120]
X_test, Y_test = simulate(500, np.random.default_rng(1))
errors = {name: [] for name in METHODS}
for n in sizes:
    X, Y = simulate(n, np.random.default_rng(0))
    for name, make in METHODS.items():
        errors[name].append(nmse(Y_test, make().fit(X, Y).predict(X_test)))
for name, values in errors.items():
    print(f"{name:<10}", np.round(values, 4))

# %%
# For comparison, a linear detector and 40 samples.

X_linear, Y_linear = simulate(40, np.random.default_rng(0), saturation=0.0)
X_other, Y_other = simulate(500, np.random.default_rng(1), saturation=0.0)
for name, make in METHODS.items():
    error = nmse(Y_other, make().fit(X_linear, Y_linear).predict(X_other))
    print(f"{name:<10}{error:.4f} of the variance")

# %% With twenty samples, or with a detector that does not saturate, nothing is gained over PLS.
# With more samples the kernel learns the curvature, and PLS cannot.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.plot(waves, X[:12].T, color="C0", lw=0.9, alpha=0.7)
left.set(xlabel="wavelength (scaled)", ylabel="absorbance", title="Twelve simulated spectra")
for (name, values), mark, colour in zip(errors.items(), ["s--", "o-"], ["C1", "C0"], strict=True):
    right.semilogx(sizes, values, mark, color=colour, label=name)
right.set_xticks(sizes, sizes)
right.minorticks_off()
right.set(
    xlabel="samples with known concentrations",
    ylabel="nMSE, mean of four",
    title="Error on 500 others",
    ylim=(0, None),
)
right.legend()
plt.show()
