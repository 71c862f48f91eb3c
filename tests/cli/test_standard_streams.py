import io
import sys
from pathlib import Path

import pandas as pd
import pytest

from entangled_kernels.cli.errors import CommandError
from entangled_kernels.cli.files import STREAM, check_streams, local_table, place_of
from entangled_kernels.tables import TableError, read_table, write_table

FRAME = pd.DataFrame({"a": [1.5, 2.5], "b": [3.0, 4.0]})


class Bytes:
    """A standard input that holds these bytes."""

    def __init__(self, content):
        self.buffer = io.BytesIO(content)


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet", "arrow", "npz"])
def test_the_kind_is_told_by_the_first_bytes(monkeypatch, folder, kind):
    write_table(FRAME, f"t.{kind}")
    monkeypatch.setattr(sys, "stdin", Bytes(Path(f"t.{kind}").read_bytes()))
    with local_table(STREAM) as path:
        assert path.name == f"stdin.{kind}"
        pd.testing.assert_frame_equal(read_table(path), FRAME)
    assert not path.parent.exists()


def test_errors_do_not_name_the_place(monkeypatch):
    monkeypatch.setattr(sys, "stdin", Bytes(b"a,b\n"))
    with pytest.raises(TableError) as caught, local_table(STREAM) as path:
        read_table(path)
    assert str(caught.value) == "stdin.csv: the table has a header but no rows"


def test_one_thing_goes_to_standard_output():
    check_streams(STREAM, json=False)
    check_streams(Path("p.csv"), json=True)
    with pytest.raises(CommandError, match="--json and --out - both write to standard output"):
        check_streams(STREAM, json=True)
    assert (place_of(STREAM), place_of(Path("p.csv"))) == ("standard output", "p.csv")
