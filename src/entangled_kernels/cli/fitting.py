"""From a table to a model: in memory, in batches, or on a cluster."""

from __future__ import annotations

from pathlib import Path

from ..estimators import EntangledKernelRidgeCV
from ..streams import Batch
from .batches import watch_batches
from .clusters import cluster, read_on_cluster
from .features import feature_maps
from .screen import Screen
from .training_table import TrainingTable

__all__ = ["fit_table"]


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

    Notes
    -----
    Blank cells of targets are counted in the table as its batches are read.
    """
    folds = folds if table.Y is None else min(folds, len(table.Y))
    maps = feature_maps(features, table.text, seed=seed)
    model = EntangledKernelRidgeCV(maps, cv=folds, n_jobs=jobs, random_state=seed)
    if table.reader is not None and dask is not None:
        with screen.working("fitting on the cluster"), cluster(dask):
            X, Y = read_on_cluster(table.reader)
            table.blanks.count(Y)
            return model.fit(X, Y)
    with screen.progress() as report:
        if table.reader is not None:
            watch = watch_batches(table.reader, report)

            def take(batch: Batch) -> None:
                table.blanks.count(batch.y)
                watch(batch)

            return model.fit_batches(table.reader, checkpoint=checkpoint, progress=take)

        def count(done: int, total: int) -> None:
            report(done, total, "choosing the settings, splits")

        return model.fit(table.X, table.Y, progress=count)
