import pytest

from entangled_kernels.cli.errors import CODES, CommandError, explain
from entangled_kernels.io import ModelFileError, TableError


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
        (
            ZeroDivisionError("one by zero"),
            "unexpected",
            "unexpected ZeroDivisionError: one by zero",
        ),
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
