import gzip

import pytest

from entangled_kernels.streams.file_kinds import KINDS, file_kind, text_delimiter


@pytest.mark.parametrize("ending", KINDS)
def test_kinds_by_the_end_of_the_name(ending):
    assert file_kind(f"a.b{ending.upper()}") == KINDS[ending]
    packed = file_kind(f"a{ending}.gz")
    assert packed == (KINDS[ending] if KINDS[ending] in ("csv", "tsv") else None)
    assert file_kind(f"a{ending}.gz", compressed=False) is None


def test_other_names_are_no_tables():
    assert file_kind("a.xlsx") is None
    assert file_kind("csv") is None


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("a,b;c,d\n1;1;1;1;1", ","),
        ("a;b,c;d\n", ";"),
        ("a\tb\n", "\t"),
        ("a\n", ","),
        ('"flow, l/s, in";b\n', ";"),
        ('\ufeff"flow, l/s, in";b\n', ";"),
    ],
)
def test_delimiters_are_those_of_the_first_line(tmp_path, text, delimiter):
    (tmp_path / "t.csv").write_text(f"\n{text}", encoding="utf-8")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(text.encode()))
    assert text_delimiter(tmp_path / "t.csv") == text_delimiter(tmp_path / "t.csv.gz") == delimiter
    assert text_delimiter("t.tsv") == text_delimiter("t.tab") == "\t"
