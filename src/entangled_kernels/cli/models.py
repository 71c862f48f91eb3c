"""Fitted models: how they are fitted and opened, facts about them as plain values, and their new rows."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import parallel_config
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.model_selection import TimeSeriesSplit
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ..estimators import EntangledKernelRidge, EntangledKernelRidgeCV, OutputKernelRidge
from ..features import EvidenceFeatures, default_feature_maps
from ..io import (
    Hints,
    ModelFileError,
    SavedModel,
    TextFormat,
    append_table,
    open_model,
    read_table,
    require_columns,
    require_numbers,
    require_text,
    text_appender,
    write_table,
)
from ..io.tables import quoted
from ..linalg import Array
from ..model import Explanation
from ..streams import Batch, BatchReader, file_kind, read_batches, table_columns
from .errors import CommandError
from .files import STREAM, check_input, in_batches
from .options import ReadingOptions
from .screen import Screen, say_note
from .tables import TrainingTable, batch_bytes, left_out_in_words, watch_batches

__all__ = [
    "NewRows",
    "Part",
    "cluster",
    "correlations_of",
    "describe",
    "entanglement_of",
    "explanation_of",
    "feature_maps",
    "fills_missing",
    "fit_table",
    "information_of",
    "inputs_of",
    "known_texts",
    "learner_of",
    "open_saved_model",
    "output_relations",
    "read_on_cluster",
    "relations_of",
    "require_calibrated",
    "settings_of",
    "targets_of",
    "text_encoder",
    "unknown_texts",
    "write_parts",
]


def fit_table(
    screen: Screen,
    table: TrainingTable,
    features: str,
    *,
    folds: int,
    seed: int,
    jobs: int | None,
    checkpoint: Path | None = None,
    dask: str | None = None,
    target_transform: dict[str, str] | None = None,
) -> EntangledKernelRidgeCV:
    """The model that cross-validation chooses, with a bar that shows how far it is.

    Parameters
    ----------
    screen : Screen
    table : TrainingTable
    features : str
        One of `FEATURES`.
    folds : int
        Of cross-validation; of a table in memory no more than there are rows.
    seed, jobs : int
    checkpoint : path, optional
        Of a table in batches.
    dask : str, optional
        Address of the cluster to read the batches on.
    target_transform : dict of str, optional
        Scales of targets by name, as in `EntangledKernelRidge`.

    Notes
    -----
    Missing targets are counted in the table as its batches are read.
    """
    held_out = table.held_out
    held_out.check_folds(folds)
    cv: Any = folds if table.Y is None or held_out.by != "rows" else min(folds, len(table.Y))
    if held_out.by == "time":
        cv = (
            TimeSeriesSplit(folds) if table.Y is None else held_out.time_splits(len(table.Y), folds)
        )
    model = new_search(
        feature_maps(features, table.text, seed=seed, fill=table.fill),
        cv=cv,
        n_jobs=jobs,
        random_state=seed,
        target_transform=target_transform,
    )
    if table.reader is not None and dask is not None:
        if held_out.by == "time":
            raise CommandError("--dask reads rows in no order; leave out --dask or --time-ordered")
        with screen.working("fitting on the cluster"), cluster(dask):
            X, Y, groups = read_on_cluster(table.reader)
            table.missing.count(Y)
            return model.fit(X, Y, groups=groups)
    with screen.progress() as report:
        if table.reader is not None:
            watch = watch_batches(table.reader, report)

            def take(batch: Batch) -> None:
                table.missing.count(batch.y)
                watch(batch)

            return model.fit_batches(table.reader, checkpoint=checkpoint, progress=take)
        model.fit(
            table.X,
            table.Y,
            groups=held_out.values if held_out.by == "groups" else None,
            progress=lambda done, total: report(done, total, "choosing the settings, splits"),
        )
        # Places of rows mean nothing without the table.
        return model.set_params(cv=TimeSeriesSplit(folds)) if held_out.by == "time" else model


def new_search(maps: list[Any], **settings: Any) -> EntangledKernelRidgeCV:
    """The estimator that `fit_table` fits, with its default grid of settings."""
    return EntangledKernelRidgeCV(maps, **settings)


@contextmanager
def cluster(address: str | None) -> Iterator[None]:
    """Work on the Dask cluster at this address, joblib's parallel loops too; None stays here."""
    if address is None:
        yield
        return
    try:
        from dask.distributed import Client
    except ImportError as error:
        raise ImportError('--dask needs Dask: pip install "entangled-kernels[dask]"') from error
    try:
        client = Client(address, timeout="10s")  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise CommandError(f"no Dask scheduler answers at {address}: {error}") from error
    with client, parallel_config(backend="dask"):
        yield


def read_on_cluster(reader: BatchReader) -> tuple[Any, Any, Any]:
    """Inputs, targets and, where there are any, groups of the files as Dask data frames."""
    import dask.dataframe as dd

    files, columns = list(reader.files), list(reader.kinds)
    kinds = {file_kind(file, compressed=False) for file in files}
    if kinds == {"csv"}:
        types = {name: str if reader.kinds[name] == "text" else float for name in columns}
        text = reader.text_format.of(files[0])
        rows = dd.read_csv(
            files,
            sep=text.delimiter,
            decimal=text.decimal,
            encoding=text.encoding,
            usecols=columns,
            dtype=types,
        )
    elif kinds == {"parquet"}:
        rows = dd.read_parquet(files, columns=columns)
    else:
        raise CommandError("--dask reads Parquet files or CSV files, all of one kind")
    if reader.drop_blank_inputs:
        rows = rows.dropna(subset=list(reader.inputs))
    # Columns that are taken from the whole have its partitions; Dask reads few columns in fewer of
    # them.
    X, Y = (rows.map_partitions(_columns, list(names)) for names in (reader.inputs, reader.targets))
    return X, Y, None if reader.groups is None else rows.map_partitions(_columns, reader.groups)


def _columns(frame: Any, names: Any) -> Any:
    return frame[names]


# Random Fourier features of ``--features fourier``.
FREQUENCIES = 300


def feature_maps(name: str, text: Sequence[str], *, seed: int, fill: bool = False) -> list[Any]:
    """The maps that a name stands for, for `EntangledKernelRidgeCV` to choose from.

    Parameters
    ----------
    name : str
        One of FEATURES: the estimators' ``"auto"``; standardised inputs; a Gaussian and a linear
        kernel tuned to the targets; or random Fourier features of a Gaussian kernel.
    text : sequence of str
        Inputs that hold text, which are encoded before each map.
    seed : int
    fill : bool, default=False
        Whether missing numbers are filled with the median of their column before each map.
    """
    if name == "auto":
        maps = default_feature_maps(seed)
    elif name == "linear":
        maps = [StandardScaler()]
    elif name == "rbf":
        maps = [EvidenceFeatures(random_state=seed)]
    else:
        fourier = RBFSampler(gamma="scale", n_components=FREQUENCIES, random_state=seed)
        maps = [make_pipeline(StandardScaler(), fourier)]
    if not text and not fill:
        return maps
    first = text_encoder(text, fill=fill) if text else median_filler()
    steps = [
        list(zip(*one.steps, strict=True))[1] if isinstance(one, Pipeline) else [one]
        for one in maps
    ]
    return [make_pipeline(first, *own) for own in steps]


def median_filler() -> SimpleImputer:
    """The step, not fitted: medians in place of missing values."""
    return SimpleImputer(strategy="median", keep_empty_features=True)


def fills_missing(feature_map: Any) -> bool:
    """Whether a feature map begins by filling in missing values."""
    if isinstance(feature_map, Pipeline):
        return fills_missing(feature_map.steps[0][1])
    if isinstance(feature_map, FeatureUnion):
        return all(fills_missing(part) for _, part in feature_map.transformer_list)
    if isinstance(feature_map, ColumnTransformer):
        return fills_missing(feature_map.remainder)
    return isinstance(feature_map, SimpleImputer)


def text_encoder(columns: Sequence[str], *, fill: bool = False) -> ColumnTransformer:
    """The step, not fitted: each text of these columns gets a column; a text not met in fitting gets none.

    With ``fill`` missing numbers are filled with the median of their column.

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
        parts = (
            feature_map.steps if isinstance(feature_map, Pipeline) else feature_map.transformer_list
        )
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


# Rows that are explained; with more inputs than this permutations take longer than fitting.
ROWS, MOST_INPUTS = 200, 200
# The test of entanglement works on matrices of this many rows, features times targets, and takes
# the third power of it.
LARGEST = 3000
MEASURES = (
    "ppt",
    "lowest_eigenvalue",
    "negativity",
    "realignment",
    "schmidt_entropy",
    "separable_share",
)
NEW_HINTS = Hints(
    text="; the model needs a number there",
    date="; the model needs a number there",
    comma="; if its comma is a decimal sign, say --decimal ,",
    empty="; fill it, or leave out the row (--missing drop)",
)


def open_saved_model(path: Path) -> SavedModel:
    """Read a model file, after a look whether there is one."""
    check_input(path)
    return open_model(path)


def learner_of(model: Any) -> Any:
    """What was learned: the model itself, the best one of a search, or the regressor behind features."""
    return getattr(model, "regressor_", getattr(model, "best_estimator_", model))


def inputs_of(saved: SavedModel, path: Path) -> list[str]:
    """Names of the columns that the model predicts from; it has them when it was fitted on a data frame.

    Raises for a model of time series, which predicts steps and not rows.
    """
    if not hasattr(saved.model, "predict"):
        raise ModelFileError(
            f"{path} is a model of time series ({type(saved.model).__name__}), which predicts steps, not "
            f"rows; load it in Python and call its forecast method"
        )
    names = getattr(saved.model, "feature_names_in_", None)
    if names is None:
        raise ModelFileError(
            f"{path} does not know the names of its inputs; fit it on a data frame, or with the fit command"
        )
    return [str(name) for name in names]


def targets_of(saved: SavedModel) -> list[str]:
    """Names of the targets, made up where there are none."""
    names = getattr(saved.model, "target_names_", None)
    if names is not None:
        return [str(name) for name in names]
    if not hasattr(saved.model, "predict") and hasattr(saved.model, "feature_names_in_"):
        return [str(name) for name in saved.model.feature_names_in_]
    # Coefficients of features are (p, m), of rows (n, p) or (n,).
    model = learner_of(saved.model)
    coef = getattr(model, "coef_", None)
    shape = model.dual_coef_.shape if coef is None else coef.T.shape
    return [f"output{place}" for place in range(shape[1] if len(shape) == 2 else 1)]


class Part(NamedTuple):
    """Rows of a table: as they were read, their inputs, and the targets given (NaN where missing) or None."""

    frame: Any
    X: Any
    given: Any


class NewRows:
    """Reads tables of new rows for a saved model, at once or in batches.

    Parameters
    ----------
    saved : SavedModel
    path : path
        Of the model, for errors.
    kept : list of str
        Columns to be copied beside what is found.
    measured : bool
        Whether target columns that a table has are measurements to be used.
    options : ReadingOptions
        How tables are read; where they do not say what to do about missing inputs, a model that was
        fitted with medians fills them.

    Attributes
    ----------
    n_left_out, n_rows : int
        Rows that were left out since they lack an input, and all that were read.
    """

    def __init__(
        self,
        saved: SavedModel,
        path: Path,
        kept: list[str],
        *,
        measured: bool,
        options: ReadingOptions,
    ) -> None:
        self.model, self.kept, self.measured = saved.model, kept, measured
        self.inputs, self.targets = inputs_of(saved, path), targets_of(saved)
        feature_map = getattr(self.model, "feature_map_", None)
        self.texts = known_texts(feature_map)
        self.told: set[str] = set()
        self.text_format = options.text_format()
        fills = fills_missing(feature_map)
        self.missing = options.missing or ("median" if fills else "error")
        if self.missing == "median" and not fills:
            raise CommandError(
                f"{path} knows no medians; fit it with --missing median, or predict with --missing drop"
            )
        self.n_left_out = self.n_rows = 0

    def parts(self, screen: Screen, table: Path, max_memory: float) -> Iterator[Part]:
        """All rows of a table; several parts only where it is read in batches."""
        if not in_batches(table, max_memory):
            check_input(table)
            with screen.working("working"):
                yield self.check(read_table(table, self.text_format), table)
            return
        have = table_columns(table, self.text_format)
        wanted = [*self.inputs, *self.kept, *self.measured_targets(have)]
        reader = read_batches(
            table,
            inputs=list(dict.fromkeys(wanted)),
            max_memory=batch_bytes(max_memory),
            text_format=self.text_format,
        )
        with screen.progress() as report:
            watch = watch_batches(reader, report)
            for batch in reader:
                source = batch.source
                place = (table, 0) if source is None else (Path(source.file), source.start)
                yield self.check(batch.X, *place)
                watch(batch)

    def measured_targets(self, columns: Iterable[str]) -> list[str]:
        """Targets among the columns of a table, where these count as measured."""
        have = set(columns)
        return [name for name in self.targets if name in have] if self.measured else []

    def check(self, frame: Any, path: Path, rows_before: int = 0) -> Part:
        """Columns that the model needs, in its order; every text that it does not know is told once."""
        require_columns(frame, [*self.inputs, *self.kept], path)
        numbers = [name for name in self.inputs if name not in self.texts]
        X, texts, blanks = frame[self.inputs].copy(), list(self.texts), self.missing != "error"
        about: dict[str, Any] = {"hints": NEW_HINTS, "rows_before": rows_before}
        X[numbers] = require_numbers(frame, numbers, path, blanks=blanks, **about)
        X[texts] = require_text(frame, texts, path, blanks=blanks, **about)
        known = self.measured_targets(frame.columns)
        given = require_numbers(frame, known, path, blanks=True, **about) if known else None
        self.n_rows += len(frame)
        if self.missing == "drop":
            whole = frame[self.inputs].notna().all(axis=1)
            self.n_left_out += int((~whole).sum())
            frame, X = frame[whole], X[whole]
            given = None if given is None else given[whole]
        for sentence in unknown_texts(X, self.texts):
            if sentence not in self.told:
                say_note(sentence)
            self.told.add(sentence)
        return Part(frame, X, given)

    def tell_left_out(self) -> None:
        """Say how many rows were left out."""
        if self.n_left_out:
            say_note(left_out_in_words(self.n_left_out, self.n_rows))

    def beside_kept(self, frame: Any, found: Any, suffix: str = "") -> Any:
        """The table to write: the columns that are kept, and what was found, renamed where both have it."""
        names = self.names_beside_kept(list(found.columns), suffix)
        return frame[self.kept].join(found.set_axis(names[len(self.kept) :], axis=1))

    def names_beside_kept(self, found: list[str], suffix: str) -> list[str]:
        """Names of the columns of that table; raises where two would be the same."""
        names = self.kept + [f"{name}{suffix}" if name in self.kept else name for name in found]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise CommandError(
                f"two columns of the output would have the name '{twice[0]}'; rename the target or the kept "
                f"column, or leave out --keep or --intervals"
            )
        return names


def require_calibrated(saved: SavedModel, path: Path, option: str) -> None:
    """Raise unless a model knows how its errors are spread, which ``option`` needs."""
    if not isinstance(saved.model, EntangledKernelRidge | EntangledKernelRidgeCV):
        raise CommandError(
            f"{option} needs an entangled kernel model, got {type(saved.model).__name__}"
        )
    try:
        _ = saved.model.residual_covariance_
    except ValueError as error:
        raise ModelFileError(
            f"{path}: {option} needs errors of unseen rows, and {error}; fit it again"
        ) from error


def write_parts(
    parts: Iterable[Any], out: Path, text_format: TextFormat, *, several: bool
) -> tuple[int, list[str]]:
    """Write data frames below each other to one file; number of rows, and names of columns."""
    rows, columns = 0, list[str]()
    if several or out == STREAM:
        to_stream = nullcontext(text_appender(sys.stdout, text_format))
        with to_stream if out == STREAM else append_table(out, text_format) as append:
            for frame in parts:
                append(frame)
                rows, columns = rows + len(frame), list(frame.columns)
    else:
        (frame,) = parts
        write_table(frame, out, text_format)
        rows, columns = len(frame), list(frame.columns)
    return rows, columns


def describe(model: EntangledKernelRidgeCV, table: TrainingTable) -> dict[str, Any]:
    """Facts about a model fitted to a table, as plain values.

    Errors are those of the model that is kept, on held-out rows. Of a table read in batches,
    relations between targets are those of the first rows.
    """
    return {
        "rows": model.n_samples_seen_ - table.missing.empty_rows
        if table.Y is None
        else len(table.Y),
        "missing_targets": table.missing.cells,
        "rows_without_targets": table.missing.empty_rows,
        "inputs": table.inputs,
        "targets": table.targets,
        "text": table.text,
        "chosen": settings_of(model.best_estimator_),
        # Those that share in the average, of small weight for less; over all targets that weigh
        # them apart.
        "candidates": float(1.0 / np.mean(np.sum(model.average_weights_**2, axis=0))),
        "nmse": float(model.cv_score_),
        "kernel_ridge_nmse": float(model.kernel_ridge_score_),
        "target_scores": _target_scores(model, table.targets),
        "relations": output_relations(model.best_estimator_, table.X).round(6).tolist(),
        "target_correlations": _target_correlations(model),
        "explanation": explain_rows(model, table.X),
        "positive_targets": _positive(table.Y),
    }


def _positive(Y: Any) -> list[str]:
    """Targets that are above zero in all rows; none of a table that is read in batches."""
    return [] if Y is None else [name for name in Y if (Y[name].dropna() > 0.0).all()]


def _target_correlations(model: EntangledKernelRidgeCV) -> list[list[float]]:
    """Correlations of the targets over rows where both were measured, zero where that says nothing."""
    import pandas as pd

    found = pd.DataFrame(model.held_out_predictions().measured).corr().fillna(0.0)
    return found.round(6).to_numpy().tolist()  # type: ignore[no-any-return]


def _target_scores(model: EntangledKernelRidgeCV, targets: list[str]) -> list[dict[str, Any]]:
    """Held-out errors of every target beside kernel ridge's; no nMSE and R2 of one that is constant."""
    columns = model.cv_target_score_, model.kernel_ridge_target_score_, model.cv_rmse_
    return [
        {
            "target": name,
            "nmse": finite(own),
            "kernel_ridge_nmse": finite(plain),
            "r2": finite(1.0 - own),
            "rmse": float(rmse),
        }
        for name, own, plain, rmse in zip(targets, *columns, strict=True)
    ]


def finite(error: float) -> float | None:
    """An error as a plain number, None where there is none."""
    return float(error) if np.isfinite(error) else None


def settings_of(model: EntangledKernelRidge) -> dict[str, Any]:
    """Feature map and parameters of a fitted model that say what it is, as plain values."""
    names = ("shrinkage", "alignment_mix", "target_alpha", "prediction")
    return {
        "features": map_in_words(model.feature_map_),
        **{n: getattr(model, n) for n in names},
        "alpha": float(model.alpha),
    }


def map_in_words(feature_map: Any) -> str:
    """A feature map by the names of its steps."""
    if feature_map is None:
        return "inputs as they are"
    return " + ".join(
        _step_in_words(step) for _, step in getattr(feature_map, "steps", [("", feature_map)])
    )


def _step_in_words(step: Any) -> str:
    if isinstance(step, ColumnTransformer):
        return " and ".join(type(part).__name__ for _, part, _ in step.transformers)
    fourier = getattr(step, "approximation", None) == "fourier"
    return f"{type(step).__name__}{' (fourier)' if fourier else ''}"


def entanglement_of(model: Any) -> dict[str, Any]:
    """Verdict, and the numbers behind it where the kernel is small enough to be tested."""
    facts: dict[str, Any] = {"entangled": None, "verdict": "", "entanglement": None}
    if not isinstance(model, EntangledKernelRidge):
        return facts | {"verdict": "Not tested: the test is for entangled kernel models."}
    if (size := model.coef_.size) > LARGEST:
        return facts | {
            "verdict": f"Not tested: features times targets are {size}, and the test is for up to {LARGEST}."
        }
    found = model.kernel_.entanglement()
    numbers = {name: getattr(found, name) for name in MEASURES}
    return {"entangled": found.entangled, "verdict": found.verdict, "entanglement": numbers}


def output_relations(model: EntangledKernelRidge, X: Any) -> Array:
    """Correlations (p, p) between targets in the kernel's mean over the rows, K(x, x) about their centre.

    One where two targets are the same to the kernel, zero where they have nothing in common.
    """
    p = len(model.coef_)
    shared = np.zeros((p, p))
    if model.kraus_.shape[0]:
        Z = model.project(X)  # (n, p, r)
        Z = Z - Z.mean(axis=0)
        shared += np.einsum("nor,nqr->oq", Z, Z) / len(Z)
    if model.metric_ is not None:
        Phi = np.asarray(
            X if model.feature_map_ is None else model.feature_map_.transform(X), dtype=float
        )
        Phi = Phi - Phi.mean(axis=0)
        shared += (
            np.eye(p) * np.einsum("ni,ij,nj->", Phi, model.metric_, Phi, optimize=True) / len(Phi)
        )
    return correlations_of(shared)


def correlations_of(covariances: Array) -> Array:
    """Covariances scaled to a diagonal of ones; what does not vary has no correlation."""
    size = np.sqrt(np.diag(covariances))
    scale = np.where(size > 0.0, size, 1.0)
    correlations: Array = covariances / np.outer(scale, scale)
    np.fill_diagonal(correlations, 1.0)
    return correlations


def relations_of(saved: SavedModel, learner: Any) -> Array | None:
    """Correlations between the targets: kept with the model, or in its output kernel."""
    if isinstance(learner, EntangledKernelRidge) and (
        learner.prediction == "partial_trace" or learner.shrinkage == 1.0
    ):
        return None
    if "relations" in saved.info:
        return np.array(saved.info["relations"])
    return (
        correlations_of(learner.output_kernel_) if isinstance(learner, OutputKernelRidge) else None
    )


def information_of(model: Any) -> Array | None:
    """The `information_` of a model; None where it has none, as models without calibration do."""
    try:
        information = getattr(model, "information_", None)
    except ValueError:
        return None
    return None if information is None else np.asarray(information)


def explain_rows(model: Any, X: Any) -> dict[str, Any] | None:
    """What a model explains of evenly spaced rows, as plain values; None where inputs are very many."""
    if X.shape[1] > MOST_INPUTS or len(X) < 2:
        return None
    places = np.unique(np.linspace(0, len(X) - 1, ROWS).astype(int))
    found = model.explain(X.iloc[places])
    arrays = ("effect", "size", "noise", "importance_noise", "target_deviation")
    return {
        "method": found.method,
        "inputs": found.inputs,
        "targets": found.targets,
        **{name: _plain(getattr(found, name)) for name in arrays},
    }


def explanation_of(values: dict[str, Any] | None) -> Explanation | None:
    """The explanation that a model file holds; None where it holds none, or one that cannot be read."""
    if not values:
        return None
    try:
        found = Explanation(**{name: _array(value) for name, value in values.items()})
        d, p = len(found.inputs), len(found.targets)
        fits = all(one.shape == (d, p) for one in (found.effect, found.size, found.noise))
        fits = (
            fits and found.importance_noise.shape == (d,) and found.target_deviation.shape == (p,)
        )
    except (TypeError, ValueError, AttributeError):
        return None
    return found if fits else None


def _plain(values: Array) -> Any:
    """Lists with six digits, None where there is no number, as JSON needs it."""
    if values.ndim > 1:
        return [_plain(row) for row in values]
    return [float(f"{value:.6g}") if np.isfinite(value) else None for value in values]


def _array(value: Any) -> Any:
    """Lists of numbers as arrays, None as NaN; lists of text as they are."""
    if isinstance(value, list) and not all(isinstance(item, str) for item in value):
        return np.array(value, dtype=np.float64)
    return value
