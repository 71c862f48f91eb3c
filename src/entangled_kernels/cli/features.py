"""Feature maps by name, and the columns of text that a step before them turns into columns of 0 and 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ..features import GaussianFeatures, default_feature_maps
from ..tables.phrases import quoted

__all__ = ["FEATURES", "feature_maps", "fills_blanks", "known_texts", "text_encoder", "unknown_texts"]

FEATURES = ("auto", "linear", "rbf", "fourier")


def feature_maps(name: str, text: Sequence[str], *, seed: int, fill: bool = False) -> list[Any]:
    """The maps that a name stands for, for `EntangledKernelRidgeCV` to choose from.

    Parameters
    ----------
    name : str
        One of FEATURES: the estimators' ``"auto"``; standardised inputs; a Gaussian kernel of median width by
        Nystroem features, or by random Fourier features.
    text : sequence of str
        Inputs that hold text, which are encoded before each map.
    seed : int
    fill : bool, default=False
        Whether blank numbers are filled with the median of their column before each map.
    """
    if name == "auto":
        maps = default_feature_maps(seed)
    elif name == "linear":
        maps = [StandardScaler()]
    else:
        maps = [GaussianFeatures(approximation="nystroem" if name == "rbf" else name, random_state=seed)]
    if text:
        return [make_pipeline(text_encoder(text, fill=fill), one) for one in maps]
    return [make_pipeline(median_filler(), one) for one in maps] if fill else maps


def median_filler() -> SimpleImputer:
    """The step, not fitted: medians in the place of blanks."""
    return SimpleImputer(strategy="median", keep_empty_features=True)


def fills_blanks(feature_map: Any) -> bool:
    """Whether a feature map begins by filling blanks."""
    if isinstance(feature_map, Pipeline):
        return fills_blanks(feature_map.steps[0][1])
    if isinstance(feature_map, FeatureUnion):
        return all(fills_blanks(part) for _, part in feature_map.transformer_list)
    if isinstance(feature_map, ColumnTransformer):
        return fills_blanks(feature_map.remainder)
    return isinstance(feature_map, SimpleImputer)


def text_encoder(columns: Sequence[str], *, fill: bool = False) -> ColumnTransformer:
    """The step, not fitted: each text of these columns gets a column; a text not met in fitting gets none.

    With ``fill`` blank numbers are filled with the median of their column.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"x": [1.5, 2.5], "town": ["Ulm", "Aix"]})
    >>> encoder = text_encoder(["town"]).fit(rows)
    >>> encoder.transform(rows.assign(town=["Aix", "Ems"])).tolist()
    [[1.0, 0.0, 1.5], [0.0, 0.0, 2.5]]
    """
    return ColumnTransformer(
        [("text", OneHotEncoder(handle_unknown="ignore", sparse_output=False), list(columns))],
        remainder=median_filler() if fill else "passthrough",
    )


def known_texts(feature_map: Any) -> dict[str, set[str]]:
    """Columns of text that a fitted feature map encodes, wherever in it, with the texts that it knows."""
    if isinstance(feature_map, Pipeline | FeatureUnion):
        parts = feature_map.steps if isinstance(feature_map, Pipeline) else feature_map.transformer_list
        return {name: texts for _, part in parts for name, texts in known_texts(part).items()}
    if not isinstance(feature_map, ColumnTransformer):
        return {}
    return {
        name: set(texts)
        for _, part, names in feature_map.transformers_
        if isinstance(part, OneHotEncoder) and isinstance(names, list)
        for name, texts in zip(names, part.categories_, strict=True)
        if isinstance(name, str) and all(isinstance(text, str) for text in texts)
    }


def unknown_texts(frame: Any, known: dict[str, set[str]]) -> list[str]:
    """Sentences about the columns that hold texts which are not known."""
    found = {name: sorted(set(frame[name]) - texts) for name, texts in known.items()}
    return [
        f"column '{name}' holds {quoted(texts)}, unknown to the model; all its 0/1 columns are 0 there"
        for name, texts in found.items()
        if texts
    ]
