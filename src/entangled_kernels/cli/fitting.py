"""From a table to a model: in memory, in batches, or on a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from joblib import parallel_config
from sklearn.model_selection import TimeSeriesSplit

from ..estimators import EntangledKernelRidgeCV
from ..streams import Batch, BatchReader, file_kind
from .batches import watch_batches
from .errors import CommandError
from .features import feature_maps
from .screen import Screen
from .training_table import TrainingTable

__all__ = ["cluster", "fit_table", "read_on_cluster"]


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
        cv = TimeSeriesSplit(folds) if table.Y is None else held_out.splits(len(table.Y), folds, seed)
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
