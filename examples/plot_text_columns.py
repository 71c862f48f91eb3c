"""
A table with words in it
========================

Adverts of flats have numbers, a district and a line of text. Targets are the rent, the days until
the flat is let, and the number of calls. Any scikit-learn transformer can be the feature map, such
as a `ColumnTransformer` that turns words into columns. The adverts are simulated: some words raise
the rent, some bring calls, most have no effect.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from entangled_kernels import EntangledKernelRidgeCV

WORDS = {"balcony": 90, "renovated": 120, "garden": 110, "lift": 60, "basement": -120, "noisy": -80}
FILLER = [
    "bright",
    "central",
    "charming",
    "near",
    "station",
    "quiet",
    "rooms",
    "view",
    "kitchen",
    "parquet",
]
DISTRICTS = {"north": 0, "south": 80, "harbour": 220}


def simulate(n, rng):
    """Adverts and their results; rent, days and calls are related."""
    area, floor = rng.uniform(30, 120, n), rng.integers(0, 7, n)
    district = rng.choice(list(DISTRICTS), n)
    texts = [rng.choice([*WORDS, *FILLER], 6, replace=False) for _ in range(n)]
    liked = np.array([sum(WORDS.get(word, 0) for word in text) for text in texts])
    asked = (
        200 + 9 * area + [DISTRICTS[name] for name in district] + liked + 40 * rng.normal(size=n)
    )
    appeal = (liked - 0.1 * (asked - 900)) / 100 + 0.4 * rng.normal(size=n)
    adverts = pd.DataFrame(
        {
            "area": area,
            "floor": floor,
            "district": district,
            "text": [" ".join(text) for text in texts],
        }
    )
    results = pd.DataFrame(
        {
            "rent": asked,
            "days": 25 - 8 * appeal + 3 * rng.normal(size=n),
            "calls": 12 + 5 * appeal + 1.5 * rng.normal(size=n),
        }
    )
    return adverts, results


X, Y = simulate(1000, np.random.default_rng(0))
X, X_test, Y, Y_test = train_test_split(X, Y, train_size=100, random_state=0)
X.head(3)

# %%
# One feature map with the text and one without it.

numbers = (StandardScaler(), ["area", "floor"])
district = (OneHotEncoder(sparse_output=False), ["district"])
words = (TfidfVectorizer(), "text")
MAPS = {
    "without text": make_column_transformer(numbers, district),
    "with text": make_column_transformer(numbers, district, words, sparse_threshold=0),
}
models = {
    name: EntangledKernelRidgeCV(columns, random_state=0).set_output(predict="pandas").fit(X, Y)
    for name, columns in MAPS.items()
}
errors = {
    name: ((model.predict(X_test) - Y_test) ** 2).mean() / Y_test.var(ddof=0)
    for name, model in models.items()
}
ridge = make_pipeline(MAPS["with text"], RidgeCV(np.logspace(-2, 2, 9))).fit(X, Y)
errors["ridge, with text"] = ((ridge.predict(X_test) - Y_test) ** 2).mean() / Y_test.var(ddof=0)
given = models["with text"].predict(X_test, given=Y_test[["calls"]])
errors["with text, calls known"] = ((given - Y_test) ** 2).mean() / Y_test.var(ddof=0)
pd.DataFrame(errors).round(3).T

# %% Without the text, days cannot be predicted at all. Plain ridge on the same columns comes close
# to the kernel, since effects of words add up. Ridge has no last bar: when the calls of the first
# days are counted, `given` conditions the prediction on them.

figure, (left, right) = plt.subplots(
    1, 2, figsize=(10, 4), layout="constrained", width_ratios=[1.3, 1]
)
names = ["rent", "days"]
looks = zip(["0.7", "C0", "C1", "C2"], ["", "", "//", ".."], strict=True)
for position, ((name, error), (colour, hatch)) in enumerate(
    zip(errors.items(), looks, strict=True)
):
    bars = np.arange(len(names)) + 0.2 * position
    left.bar(bars, error[names], 0.18, color=colour, hatch=hatch, edgecolor="white", label=name)
left.set_xticks(np.arange(len(names)) + 0.3, names)
left.set(ylabel="nMSE on 900 adverts", title="Error with and without the text")
left.legend()
right.plot(
    Y_test["days"],
    models["without text"].predict(X_test)["days"],
    ".",
    color="0.7",
    label="without text",
)
right.plot(Y_test["days"], given["days"], ".", color="C2", ms=4, label="with text, calls known")
ends = [Y_test["days"].min(), Y_test["days"].max()]
right.plot(ends, ends, color="0.3", lw=1)
right.set(xlabel="days until let", ylabel="predicted", title="Days, on other adverts")
right.legend()
plt.show()
