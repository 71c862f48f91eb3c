import pytest

from entangled_kernels.cli.errors import CODES, CommandError, check_choice, data_errors, explain
from entangled_kernels.io import ModelFileError, TableError
from entangled_kernels.streams import BatchError


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (
            PermissionError(13, "Permission denied", "a.model"),
            "write",
            "not allowed to write or read (a.model)",
        ),
        (OSError(28, "No space left on device"), "write", "the disk is full; nothing was changed"),
        (OSError(5, "Input/output error", "x"), "write", "Input/output error (x)"),
        (ImportError("tables need pyarrow"), "missing", "tables need pyarrow"),
        (MemoryError(), "unexpected", "not enough memory"),
        (ZeroDivisionError("one by zero"), "unexpected", "unexpected ZeroDivisionError: one by zero"),
    ],
)
def test_errors_in_words(error, code, words):
    found, sentence = explain(error)
    assert found == CODES[code]
    assert words in sentence


def test_codes_of_our_own_errors():
    assert explain(CommandError("no")) == (CODES["usage"], "no")
    assert explain(CommandError("no", "missing")) == (CODES["missing"], "no")
    assert explain(TableError("t.csv", "wet")) == (CODES["data"], "t.csv: wet")
    assert explain(ModelFileError("odd")) == (CODES["model"], "odd")
    assert explain(KeyboardInterrupt())[0] == CODES["interrupted"] == 130


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (ValueError("X is odd"), "t.csv: X is odd"),
        (TableError("u.csv", "wet"), "u.csv: wet"),
        (BatchError("v.csv, rows 1 to 5: wet"), "v.csv, rows 1 to 5: wet"),
    ],
)
def test_what_is_said_of_data_names_the_table_once(error, sentence):
    with pytest.raises((TableError, BatchError)) as caught, data_errors("t.csv"):
        raise error
    assert explain(caught.value) == (CODES["data"], sentence)


def test_choices():
    check_choice("--kind", "a", ["a", "b"])
    with pytest.raises(CommandError, match="--kind must be one of a, b, got 'c'"):
        check_choice("--kind", "c", ["a", "b"])
