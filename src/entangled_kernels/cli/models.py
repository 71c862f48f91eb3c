"""Models: fitting and opening them, facts about them as plain values, and new rows."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import fields, replace
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

from ..estimators import EntangledKernelRidge, EntangledKernelRidgeCV
from ..features import EvidenceFeatures, default_feature_maps
from ..io import (
    Hints,
    ModelFileError,
    SavedModel,
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
from ..selection import split_rows
from ..streams import Batch, BatchReader, file_kind, read_batches, table_columns
from .errors import CommandError
from .files import STREAM, check_input, decimal_sign, in_batches
from .options import FitOptions, NewRowsOptions, ReadingOptions
from .screen import Screen, say_note
from .tables import TrainingTable, batch_bytes, left_out_in_words, watch_batches

__all__ = [
    "NewRows",
    "Part",
    "baseline_errors",
    "cluster",
    "describe",
    "entanglement_of",
    "explanation_of",
    "feature_maps",
    "fit_table",
    "information_of",
    "inputs_of",
    "learner_of",
    "open_saved_model",
    "read_on_cluster",
    "require_calibrated",
    "settings_of",
    "targets_of",
    "text_encoder",
]


# Methods that a fitted model is compared with, and the largest number of rows for which that is quick.
BASELINES, MOST_BASELINE_ROWS = ("ridge", "PLS", "extra-trees"), 5000


def fit_table(
    screen: Screen, table: TrainingTable, options: FitOptions, scales: dict[str, str]
) -> EntangledKernelRidgeCV:
    """The model that cross-validation chooses, with progress shown.

    ``scales`` are those of targets that are learned as logarithms. Missing targets of tables that
    are read in batches are counted here.
    """
    held_out, dask = table.held_out, options.dask
    held_out.check_folds(options.folds)
    model = new_search(
        feature_maps(options.features, table.text, seed=options.seed, fill=table.fill),
        cv=_folds(table, options.folds),
        n_jobs=options.jobs,
        random_state=options.seed,
        target_transform=scales or None,
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

            def count_and_report(batch: Batch) -> None:
                table.missing.count(batch.y)
                watch(batch)

            return model.fit_batches(
                table.reader, checkpoint=options.checkpoint, progress=count_and_report
            )
        model.fit(
            table.X,
            table.Y,
            groups=held_out.values if held_out.by == "groups" else None,
            progress=lambda done, total: report(
                done, total, "choosing the settings, feature maps on splits"
            ),
        )
        # The splits are lists of rows, which mean nothing without the table.
        by_time = held_out.by == "time"
        return model.set_params(cv=TimeSeriesSplit(options.folds)) if by_time else model


def _folds(table: TrainingTable, folds: int) -> Any:
    """The parameter ``cv`` of the search."""
    held_out, in_memory = table.held_out, table.Y is not None
    if held_out.by == "time":
        return held_out.time_splits(len(table.Y), folds) if in_memory else TimeSeriesSplit(folds)
    return min(folds, len(table.Y)) if in_memory and held_out.by == "rows" else folds


def baseline_errors(table: TrainingTable, options: FitOptions) -> dict[str, float]:
    """The nMSE of well-known methods, on the folds of the search, each row held out once.

    Each method has its usual settings, and chooses the rest on the training rows, with folds that
    hold out groups or later rows as those of the search do. None is tried on a table of very many
    rows, or one that is read in batches.
    """
    if table.Y is None or len(table.Y) > MOST_BASELINE_ROWS:
        return {}
    from ..experiments.methods import tuned_learner
    from ..experiments.protocol import RowScheme

    Y, held_out = table.Y.to_numpy(dtype=np.float64), table.held_out
    groups = held_out.values if held_out.by == "groups" else None
    scheme = RowScheme(held_out.by, held_out.values)
    cv, seed = _folds(table, options.folds), options.seed
    splits = split_rows(cv, table.X, Y, groups, None, n_table=len(Y), random_state=seed)
    squares: dict[str, list[Array]] = {name: [] for name in BASELINES}
    for train, test in splits[: options.folds]:
        encoder = make_pipeline(text_encoder(table.text, fill=table.fill), StandardScaler())
        X, X_test = (
            encoder.fit_transform(table.X.iloc[train]),
            encoder.transform(table.X.iloc[test]),
        )
        mean, deviation = np.nanmean(Y[train], axis=0), np.nanstd(Y[train], axis=0)
        deviation = np.where(deviation > 0.0, deviation, 1.0)
        Z = (Y[train] - mean) / deviation
        for name, errors in squares.items():
            # With very few rows, or rows of a target, a method cannot be fitted.
            with suppress(ValueError), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                inner = scheme.folds(train, seed)
                learner = tuned_learner(name, X, Z, inner, seed).fit(X, Z)
                predicted = np.asarray(learner.predict(X_test)).reshape(len(test), -1)
                errors.append((Y[test] - mean - deviation * predicted) ** 2)
    variance = np.nanvar(Y, axis=0)
    varies = variance > 0.0
    return {
        name: float(np.mean(np.nanmean(np.vstack(errors), axis=0)[varies] / variance[varies]))
        for name, errors in squares.items()
        if len(errors) == min(options.folds, len(splits))
    }


def new_search(maps: list[Any], **settings: Any) -> EntangledKernelRidgeCV:
    """The estimator that `fit_table` fits, with its default grid of settings."""
    return EntangledKernelRidgeCV(maps, **settings)


@contextmanager
def cluster(address: str | None) -> Iterator[None]:
    """Work on the Dask cluster at this address, also in parallel loops of joblib; None for no cluster."""
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
    """Inputs, targets and groups (or None) of the files as Dask data frames."""
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
    # Columns are taken from the whole table, so that all have its partitions: Dask would read a few
    # columns in fewer partitions.
    X, Y = (rows.map_partitions(_columns, list(names)) for names in (reader.inputs, reader.targets))
    return X, Y, None if reader.groups is None else rows.map_partitions(_columns, reader.groups)


def _columns(frame: Any, names: Any) -> Any:
    return frame[names]


# Feature maps, text and missing inputs.

# Random Fourier features of ``--features fourier``.
FREQUENCIES = 300


def feature_maps(name: str, text: Sequence[str], *, seed: int, fill: bool = False) -> list[Any]:
    """The feature maps for a value of ``--features``, for `EntangledKernelRidgeCV` to choose from.

    Parameters
    ----------
    name : str
        ``"auto"``, the maps of the estimator; ``"linear"``, standardised inputs; ``"rbf"``, a Gaussian
        and a linear kernel tuned to the targets; ``"fourier"``, random Fourier features.
    text : sequence of str
        Inputs of text, which are encoded before each map.
    seed : int
    fill : bool, default=False
        Whether missing numbers are replaced by the median of their column before each map.
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
    steps = ([*one] if isinstance(one, Pipeline) else [one] for one in maps)
    return [make_pipeline(first, *parts) for parts in steps]


def median_filler() -> SimpleImputer:
    """An imputer that fills missing values with the median of their column; empty columns get zero."""
    return SimpleImputer(strategy="median", keep_empty_features=True)


def fills_missing(feature_map: Any) -> bool:
    """Whether a feature map replaces missing values first."""
    if isinstance(feature_map, Pipeline):
        return fills_missing(feature_map.steps[0][1])
    if isinstance(feature_map, FeatureUnion):
        return all(fills_missing(part) for _, part in feature_map.transformer_list)
    if isinstance(feature_map, ColumnTransformer):
        return fills_missing(feature_map.remainder)
    return isinstance(feature_map, SimpleImputer)


def text_encoder(columns: Sequence[str], *, fill: bool = False) -> ColumnTransformer:
    """A transformer that makes a column of 0 and 1 for each text in these columns.

    With ``fill`` it replaces missing numbers by the median of their column.

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
    """Columns of text that a fitted feature map encodes, with the texts seen in training."""
    if isinstance(feature_map, Pipeline | FeatureUnion):
        union = isinstance(feature_map, FeatureUnion)
        parts = feature_map.transformer_list if union else feature_map.steps
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


# Saved models and new rows.

# The number of rows that are explained. With more inputs permutations take longer than fitting.
ROWS, MOST_INPUTS = 200, 200
# The largest number of features times targets for the test of entanglement, whose time grows with
# its third power.
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
    """Read a model file; raises if there is none."""
    check_input(path)
    return open_model(path)


def learner_of(model: Any) -> Any:
    """The model itself, the best one of a search, or the regressor inside a target transform."""
    return getattr(model, "regressor_", getattr(model, "best_estimator_", model))


def inputs_of(saved: SavedModel, path: Path) -> list[str]:
    """Names of the columns that the model predicts from, if it was fitted on a data frame.

    Raises for a model of time series, which predicts steps and not rows.
    """
    if not hasattr(saved.model, "predict"):
        raise ModelFileError(
            f"{path} is a model of time series ({type(saved.model).__name__}), which predicts "
            f"steps, not rows; load it in Python and call its forecast method"
        )
    names = getattr(saved.model, "feature_names_in_", None)
    if names is None:
        raise ModelFileError(
            f"{path} does not know the names of its inputs; fit it on a data frame, or with the "
            "fit command"
        )
    return [str(name) for name in names]


def targets_of(saved: SavedModel) -> list[str]:
    """Names of the targets; output0, output1 and so on for a model without names."""
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
    """Rows as read, their inputs, and the given targets (NaN where missing) or None."""

    frame: Any
    X: Any
    given: Any


class NewRows:
    """Reads tables of new rows for a saved model, at once or in batches.

    Parameters
    ----------
    saved : SavedModel
    path : path
        File of the model, for errors.
    kept : list of str
        Columns to copy in front of the results.
    measured : bool
        Whether targets in the table are given to the model.
    options : ReadingOptions
        How tables are read. Without ``--missing``, a model that was fitted with medians fills in
        missing inputs.

    Attributes
    ----------
    n_left_out, n_rows : int
        Rows that were left out because an input is missing, and all rows that were read.
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
        self.noted: set[str] = set()
        # The decimal sign of the training table, where the new one does not show its own.
        usual = saved.info.get("decimal", ".")
        self.text_format = replace(
            options.text_format(), usual_decimal="," if usual == "," else "."
        )
        fills = fills_missing(feature_map)
        self.missing = options.missing or ("median" if fills else "error")
        if self.missing == "median" and not fills:
            raise CommandError(
                f"{path} knows no medians; fit it with --missing median, or predict with "
                "--missing drop"
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
        """Targets among the columns of a table, if they are given to the model."""
        have = set(columns)
        return [name for name in self.targets if name in have] if self.measured else []

    def check(self, frame: Any, path: Path, rows_before: int = 0) -> Part:
        """Check the columns that the model needs; the inputs in its order, and the given targets.

        Raises with row and column for a cell that cannot be used. Texts that the model does not know
        are named in a note.
        """
        require_columns(frame, [*self.inputs, *self.kept], path)
        numbers = [name for name in self.inputs if name not in self.texts]
        X, texts, blanks = frame[self.inputs].copy(), list(self.texts), self.missing != "error"
        errors: dict[str, Any] = {"hints": NEW_HINTS, "rows_before": rows_before}
        X[texts] = require_text(frame, texts, path, blanks=blanks, **errors)
        errors["decimal"] = decimal_sign(path, self.text_format)
        X[numbers] = require_numbers(frame, numbers, path, blanks=blanks, **errors)
        known = self.measured_targets(frame.columns)
        given = require_numbers(frame, known, path, blanks=True, **errors) if known else None
        self.n_rows += len(frame)
        if self.missing == "drop":
            whole = frame[self.inputs].notna().all(axis=1)
            self.n_left_out += int((~whole).sum())
            frame, X = frame[whole], X[whole]
            given = None if given is None else given[whole]
        self.note_unknown_texts(X)
        return Part(frame, X, given)

    def note_unknown_texts(self, X: Any) -> None:
        """Print a note on the texts that the model does not know, once for each column."""
        for name, known in self.texts.items():
            if unknown := sorted(set(X[name]) - known):
                sentence = (
                    f"column '{name}' holds {quoted(unknown)}, unknown to the model; all its 0/1 "
                    "columns are 0 there"
                )
                if sentence not in self.noted:
                    say_note(sentence)
                self.noted.add(sentence)

    def note_left_out(self) -> None:
        """Print a note on rows that were left out."""
        if self.n_left_out:
            say_note(left_out_in_words(self.n_left_out, self.n_rows))

    def write(
        self, frames: Iterable[Any], out: Path, table: Path, options: NewRowsOptions
    ) -> tuple[int, list[str]]:
        """Write what was found in a table, part by part; number of rows, and names of columns."""
        written = options.written_format(table, self.text_format)
        if out != STREAM and not in_batches(table, options.max_memory):
            (frame,) = frames
            write_table(frame, out, written)
            return len(frame), list(frame.columns)
        rows, columns = 0, list[str]()
        to_stream = nullcontext(text_appender(sys.stdout, written))
        with to_stream if out == STREAM else append_table(out, written) as append:
            for frame in frames:
                append(frame)
                rows, columns = rows + len(frame), list(frame.columns)
        return rows, columns

    def beside_kept(self, frame: Any, results: Any, suffix: str = "") -> Any:
        """The table to write: kept columns, then results, renamed if a kept column has their name."""
        names = self.names_beside_kept(list(results.columns), suffix)
        return frame[self.kept].join(results.set_axis(names[len(self.kept) :], axis=1))

    def names_beside_kept(self, results: list[str], suffix: str) -> list[str]:
        """Names of the columns of that table; raises if two would be the same."""
        names = self.kept + [f"{name}{suffix}" if name in self.kept else name for name in results]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise CommandError(
                f"two columns of the output would have the name '{twice[0]}'; rename the target or "
                f"the kept column, or leave out --keep or --intervals"
            )
        return names


def require_calibrated(saved: SavedModel, path: Path, option: str) -> None:
    """Raise unless a model has the covariance of its held-out errors, which ``option`` needs."""
    if not isinstance(saved.model, EntangledKernelRidge | EntangledKernelRidgeCV):
        raise CommandError(
            f"{option} needs an entangled kernel model, got {type(saved.model).__name__}"
        )
    try:
        _ = saved.model.residual_covariance_
    except ValueError as error:
        raise ModelFileError(
            f"{path}: {option} needs held-out errors, and {error}; fit it again"
        ) from error


def describe(model: EntangledKernelRidgeCV, table: TrainingTable) -> dict[str, Any]:
    """Facts about a model fitted to a table, as plain values.

    Errors are those of the model that is kept, on held-out rows.
    """
    Y, missing = table.Y, table.missing
    return {
        "rows": model.n_samples_seen_ - missing.empty_rows if Y is None else len(Y),
        "missing_targets": missing.cells,
        "rows_without_targets": missing.empty_rows,
        "inputs": table.inputs,
        "targets": table.targets,
        "text": table.text,
        "chosen": settings_of(model.best_estimator_),
        # The effective number of candidates in the average, over all targets.
        "candidates": float(1.0 / np.mean(np.sum(model.average_weights_**2, axis=0))),
        "nmse": float(model.cv_score_),
        "kernel_ridge_nmse": float(model.kernel_ridge_score_),
        "target_scores": _target_scores(model, table.targets),
        "explanation": explain_rows(model, table.X),
        "positive_targets": []
        if Y is None
        else [name for name in Y if (Y[name].dropna() > 0).all()],
    }


def _target_scores(model: EntangledKernelRidgeCV, targets: list[str]) -> list[dict[str, Any]]:
    """Held-out errors of every target and of kernel ridge; None for a constant target."""

    def finite(error: float) -> float | None:
        return float(error) if np.isfinite(error) else None

    columns = model.cv_target_score_, model.kernel_ridge_target_score_, model.cv_rmse_
    return [
        {
            "target": name,
            "nmse": finite(error),
            "kernel_ridge_nmse": finite(plain),
            "r2": finite(1.0 - error),
            "rmse": float(rmse),
        }
        for name, error, plain, rmse in zip(targets, *columns, strict=True)
    ]


def settings_of(model: EntangledKernelRidge) -> dict[str, Any]:
    """Feature map and parameters of a fitted model, as plain values."""
    names = ["shrinkage", "alignment_mix", "target_alpha", "prediction"]
    if model.prediction == "reduced_rank":
        names.append("rank")
    feature_map, steps = model.feature_map_, []
    for _, step in getattr(feature_map, "steps", [("", feature_map)]):
        if isinstance(step, ColumnTransformer):
            steps.append(" and ".join(type(part).__name__ for _, part, _ in step.transformers))
        else:
            fourier = getattr(step, "approximation", None) == "fourier"
            steps.append(f"{type(step).__name__}{' (fourier)' if fourier else ''}")
    return {
        "features": "inputs as they are" if feature_map is None else " + ".join(steps),
        **{name: getattr(model, name) for name in names},
        "alpha": float(model.alpha),
    }


def entanglement_of(model: Any) -> dict[str, Any]:
    """Whether the kernel is entangled, with the numbers behind it if the kernel is small enough."""
    facts: dict[str, Any] = {"entangled": None, "verdict": "", "entanglement": None}
    if not isinstance(model, EntangledKernelRidge):
        return facts | {"verdict": "Not tested: the test is for entangled kernel models."}
    if (size := model.coef_.size) > LARGEST:
        return facts | {
            "verdict": f"Not tested: features times targets are {size}, and the test is for up to "
            f"{LARGEST}."
        }
    found = model.kernel_.entanglement()
    numbers = {name: getattr(found, name) for name in MEASURES}
    return {"entangled": found.entangled, "verdict": found.verdict, "entanglement": numbers}


def information_of(model: Any) -> Array | None:
    """The `information_` of a model; None for a model without calibration."""
    try:
        information = getattr(model, "information_", None)
    except ValueError:
        return None
    return None if information is None else np.asarray(information)


def explain_rows(model: Any, X: Any) -> dict[str, Any] | None:
    """The explanation of a model for evenly spaced rows, as plain values; None with too many inputs."""
    if X.shape[1] > MOST_INPUTS or len(X) < 2:
        return None
    found = model.explain(X.iloc[np.unique(np.linspace(0, len(X) - 1, ROWS).astype(int))])
    return {field.name: _plain(getattr(found, field.name)) for field in fields(Explanation)}


def explanation_of(values: dict[str, Any] | None) -> Explanation | None:
    """The explanation in a model file; None if there is none, or a wrong one."""
    try:
        found = Explanation(**{name: _array(value) for name, value in (values or {}).items()})
        d, p = len(found.inputs), len(found.targets)
        shapes = [found.effect.shape, found.size.shape, found.noise.shape]
        shapes += [found.importance_noise.shape, found.target_deviation.shape]
    except (TypeError, ValueError, AttributeError):
        return None
    return found if shapes == [(d, p)] * 3 + [(d,), (p,)] else None


def _plain(value: Any) -> Any:
    """Arrays as lists of numbers with six digits, None for NaN; the rest as it is."""
    if not isinstance(value, np.ndarray):
        return value
    if value.ndim > 1:
        return [_plain(row) for row in value]
    return [float(f"{number:.6g}") if np.isfinite(number) else None for number in value]


def _array(value: Any) -> Any:
    """Lists of numbers as arrays, None as NaN; the rest as it is."""
    if isinstance(value, list) and not all(isinstance(item, str) for item in value):
        return np.array(value, dtype=np.float64)
    return value
