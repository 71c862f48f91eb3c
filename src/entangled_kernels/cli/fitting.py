"""From a table to a model: feature maps by name, and the fit in memory, in batches, or on a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from joblib import parallel_config
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.model_selection import TimeSeriesSplit
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ..estimators import EntangledKernelRidgeCV
from ..features import EvidenceFeatures, default_feature_maps
from ..streams import Batch, BatchReader, file_kind
from ..tables.phrases import quoted
from .errors import CommandError
from .screen import Screen
from .tables import TrainingTable, watch_batches

__all__ = [
    "cluster",
    "feature_maps",
    "fills_blanks",
    "fit_table",
    "known_texts",
    "read_on_cluster",
    "text_encoder",
    "unknown_texts",
]


# Random Fourier features of ``--features fourier``.
FREQUENCIES = 300


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
    Blank cells of targets are counted in the table as its batches are read.
    """
    held_out = table.held_out
    held_out.check_folds(folds)
    cv: Any = folds if table.Y is None or held_out.by != "rows" else min(folds, len(table.Y))
    if held_out.by == "time":
        cv = TimeSeriesSplit(folds) if table.Y is None else held_out.time_splits(len(table.Y), folds)
    model = EntangledKernelRidgeCV(
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
            table.blanks.count(Y)
            return model.fit(X, Y, groups=groups)
    with screen.progress() as report:
        if table.reader is not None:
            watch = watch_batches(table.reader, report)

            def take(batch: Batch) -> None:
                table.blanks.count(batch.y)
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
    # Columns that are taken from the whole have its partitions; Dask reads few columns in fewer of them.
    X, Y = (rows.map_partitions(_columns, list(names)) for names in (reader.inputs, reader.targets))
    return X, Y, None if reader.groups is None else rows.map_partitions(_columns, reader.groups)


def _columns(frame: Any, names: Any) -> Any:
    return frame[names]


def feature_maps(name: str, text: Sequence[str], *, seed: int, fill: bool = False) -> list[Any]:
    """The maps that a name stands for, for `EntangledKernelRidgeCV` to choose from.

    Parameters
    ----------
    name : str
        One of FEATURES: the estimators' ``"auto"``; standardised inputs; a Gaussian and a linear kernel tuned
        to the targets; or random Fourier features of a Gaussian kernel.
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
    elif name == "rbf":
        maps = [EvidenceFeatures(random_state=seed)]
    else:
        fourier = RBFSampler(gamma="scale", n_components=FREQUENCIES, random_state=seed)
        maps = [make_pipeline(StandardScaler(), fourier)]
    if not text and not fill:
        return maps
    first = text_encoder(text, fill=fill) if text else median_filler()
    return [make_pipeline(first, *_steps(one)) for one in maps]


def _steps(feature_map: Any) -> list[Any]:
    return [step for _, step in feature_map.steps] if isinstance(feature_map, Pipeline) else [feature_map]


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
