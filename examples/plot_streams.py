"""
More rows than memory, and plants that drift
============================================

Rows come in batches: from files, from a plant, from a cluster. The model needs only their mean and
second moments, so no rows are kept. Three ways to pass the same rows give the same model, and old
rows that mislead can be forgotten.
"""

import dask
import dask.array as da
import matplotlib.pyplot as plt
import numpy as np

from entangled_kernels import EntangledKernelRidge

rng = np.random.default_rng(0)
X = rng.normal(size=(20_000, 8))
Y = np.tanh(X @ rng.normal(size=(8, 4))) + 0.3 * rng.normal(size=(20_000, 4))

# %%
# The whole table at once, batches of 500 rows, and a Dask array of four chunks.

whole = EntangledKernelRidge().fit(X, Y)
batches = EntangledKernelRidge()
for start in range(0, len(X), 500):
    batches.partial_fit(X[start : start + 500], Y[start : start + 500])
with dask.config.set(scheduler="threads"):
    chunks = (5_000, -1)
    cluster = EntangledKernelRidge().fit(
        da.from_array(X, chunks=chunks), da.from_array(Y, chunks=chunks)
    )
largest = np.abs(whole.coef_).max()
print("differences from the whole, as shares of the largest coefficient:")
print(f"batches {np.abs(batches.solve().coef_ - whole.coef_).max() / largest:.0e}")
print(f"Dask    {np.abs(cluster.coef_ - whole.coef_).max() / largest:.0e}")

# %% Now a plant whose coefficients jump twice. Every batch of 20 rows is predicted before it is
# learned from.


def follow(forget):
    """Squared errors of every batch, over the variance of the targets."""
    rng = np.random.default_rng(1)
    model, errors = EntangledKernelRidge(), []
    for batch in range(150):
        if batch % 50 == 0:
            coefficients = rng.normal(size=(8, 4))
        X = rng.normal(size=(20, 8))
        Y = X @ coefficients + 0.5 * rng.normal(size=(20, 4))
        if batch:
            errors.append(np.mean((model.predict(X) - Y) ** 2) / (8 + 0.25))
        model.partial_fit(X, Y, forget=forget)
    return np.array(errors)


errors = {forget: follow(forget) for forget in (1.0, 0.99, 0.95)}
for forget, values in errors.items():
    print(
        f"forget={forget:<5} mean error {values.mean():.3f}, in the first 49 batches {values[:49].mean():.3f}"
    )

# %% Before the first jump, remembering all rows is best by little. After it, such a model averages
# two plants. With `forget=0.95` the memory is about 20 rows: errors fall quickly after a jump, and
# are a little higher between jumps.

figure, ax = plt.subplots(figsize=(9, 4), layout="constrained")
for (forget, values), line in zip(errors.items(), [":", "-", "--"], strict=True):
    smooth = np.convolve(values, np.ones(3) / 3, mode="valid")
    label = f"forget={forget}" + (" (remembers everything)" if forget == 1.0 else "")
    ax.semilogy(np.arange(2, 2 + len(smooth)), smooth, line, label=label)
for jump in (50, 100):
    ax.axvline(jump, color="0.6", lw=0.8)
    ax.annotate(
        "jump", (jump, 1), (4, 4), xycoords=("data", "axes fraction"), textcoords="offset points"
    )
ax.set(xlabel="batch of 20 rows", ylabel="nMSE before learning (mean of three batches)")
ax.set_title("A plant that jumps twice", loc="left")
ax.legend(loc="upper left", bbox_to_anchor=(0.02, 0.98))
plt.show()
