"""Tables larger than memory: ``fit`` and ``predict`` batch by batch, or on a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from joblib import parallel_config

from ..estimators import EntangledKernelRidgeCV
from ..storage import SavedModel
from ..streams import Batch, BatchReader, csv_delimiter, read_batches, table_columns
from ..tables import append_table
from .columns import choose_columns
from .errors import CommandError
from .features import feature_maps
from .learning import best_kernel_ridge, effective_candidates, searcher, target_scores
from .models import inputs_of, targets_of
from .relations import output_relations
from .screen import Screen
from .words import settings_of

__all__ = [
    "Checkpoint",
    "Dask",
    "MaxMemory",
    "StreamFit",
    "cluster",
    "describe_stream",
    "in_batches",
    "predict_stream",
]

Checkpoint = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        metavar="FILE",
        help="Read in batches and save the state there now and then; the same command goes on from it.",
    ),
]
Dask = Annotated[
    str | None,
    typer.Option("--dask", metavar="ADDRESS", help="Dask scheduler to work on, such as tcp://10.0.0.1:8786."),
]
MaxMemory = Annotated[
    float,
    typer.Option(
        "--max-memory", metavar="MB", min=16, help="Larger tables, folders and patterns are read in batches."
    ),
]

# A table takes about so many times the size of its file when it is read and worked on.
GROWTH = 4
# Rows that show what the inputs are like.
SAMPLE = 10_000


def in_batches(table: Path, max_memory: float) -> bool:
    """Whether a table is several files, or too large to be read at once."""
    if table.is_dir() or (not table.exists() and any(sign in str(table) for sign in "*?[")):
        return True
    return table.exists() and table.stat().st_size * GROWTH > max_memory * 2**20


@dataclass(frozen=True)
class StreamFit:
    """What `fit` needs of a table that is read in batches."""

    reader: BatchReader
    sample: Any
    notes: list[str]

    @classmethod
    def of(cls, table: Path, targets: Any, inputs: Any, max_memory: float) -> StreamFit:
        """Choose columns by the first file, and look at the first rows."""
        import pandas as pd

        kinds, notes = table_columns(table), list[str]()
        names, wanted = choose_columns(pd.DataFrame(columns=list(kinds)), targets, inputs, table, notes)
        other = [name for name in wanted if kinds[name] != "number"]
        if other and inputs is not None:
            raise CommandError(f"{table}: column '{other[0]}' holds {kinds[other[0]]}, not numbers", "data")
        if other:
            notes.append(f"left out, since they hold no numbers: {', '.join(map(repr, other))}")
            wanted = [name for name in wanted if name not in other]
        reader = read_batches(table, inputs=wanted, targets=names, max_memory=max_memory * 2**20 / 8)
        frames, n_rows = [], 0
        for batch in reader:
            frames.append(batch.X)
            n_rows += len(batch.X)
            if n_rows >= SAMPLE:
                break
        if n_rows == 0:
            raise CommandError(f"{table} holds no rows", "data")
        return cls(reader, pd.concat(frames, ignore_index=True)[:SAMPLE], notes)

    def run(
        self, screen: Screen, features: str, folds: int, seed: int, jobs: int | None, **where: Any
    ) -> EntangledKernelRidgeCV:
        """Fit in batches, with a checkpoint, or on a cluster."""
        maps = feature_maps(features, self.sample, folds=folds, seed=seed)
        model = searcher(maps, folds=folds, seed=seed, jobs=jobs)
        if where["dask"] is not None:
            with screen.working("fitting on the cluster"), cluster(where["dask"]):
                rows = _read_on_cluster(self.reader)
                return model.fit(rows[list(self.reader.inputs)], rows[list(self.reader.targets)])
        with screen.progress() as report:
            watch = _watch(self.reader, report)
            return model.fit_batches(self.reader, checkpoint=where["checkpoint"], progress=watch)


def describe_stream(model: EntangledKernelRidgeCV, stream: StreamFit) -> dict[str, Any]:
    """What is kept beside the model; the relations between targets are those of the first rows."""
    return {
        "rows": model.n_samples_seen_,
        "inputs": list(stream.reader.inputs),
        "targets": list(stream.reader.targets),
        "categories": {},
        "chosen": settings_of(model.best_estimator_),
        "candidates": effective_candidates(model),
        "nmse": float(model.best_score_),
        "kernel_ridge_nmse": best_kernel_ridge(model)[1],
        "target_scores": target_scores(model, list(stream.reader.targets)),
        "relations": output_relations(model.best_estimator_, stream.sample).round(6).tolist(),
    }


def predict_stream(
    screen: Screen,
    saved: SavedModel,
    table: Path,
    out: Path,
    kept: list[str],
    max_memory: float,
    predict_rows: Callable[[Any, Path], Any],
    model: Path,
) -> int:
    """Write predictions batch by batch; the number of rows."""
    names = inputs_of(saved, model)
    columns = [*names, *(name for name in kept if name not in names)]
    reader = read_batches(table, inputs=columns, max_memory=max_memory * 2**20 / 8)
    # All columns but the model's keep their kind, so nothing is asked of them.
    clash = {name: f"{name} predicted" for name in targets_of(saved) if name in kept}
    rows = 0
    with append_table(out) as append, screen.progress() as report:
        watch = _watch(reader, report)
        for batch in reader:
            source = Path(batch.source.file) if batch.source else table
            predictions = predict_rows(batch.X, source).rename(columns=clash)
            append(batch.X[kept].join(predictions))
            rows += len(predictions)
            watch(batch)
    return rows


def _watch(reader: BatchReader, report: Callable[[int, int, str], None]) -> Callable[[Batch], None]:
    """Progress by bytes, with the rows named."""
    total, rows = reader.n_bytes, [0]

    def watch(batch: Batch) -> None:
        rows[0] += len(batch.X)
        done = total if batch.source is None else reader.bytes_until(batch.source)
        report(done, total, f"{rows[0]:,} rows, bytes")

    return watch


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


def _read_on_cluster(reader: BatchReader) -> Any:
    """The columns of the files as a Dask data frame."""
    import dask.dataframe as dd

    files, columns = list(reader.files), [*reader.inputs, *reader.targets]
    ends = {Path(file).suffix for file in files}
    if ends == {".csv"}:
        kinds = dict.fromkeys(columns, float)
        return dd.read_csv(files, sep=csv_delimiter(files[0]), usecols=columns, dtype=kinds)
    if not ends <= {".parquet", ".pq"}:
        raise CommandError("--dask reads Parquet files or CSV files, all of one kind")
    return dd.read_parquet(files, columns=columns)
