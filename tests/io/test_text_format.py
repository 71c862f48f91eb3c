import gzip

import pytest

from entangled_kernels.files import TextFormat
from entangled_kernels.streams import read_batches


def write(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


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
    write(tmp_path / "t.csv", f"\n{text}")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(text.encode()))
    assert TextFormat().of(tmp_path / "t.csv").delimiter == delimiter
    assert TextFormat().of(tmp_path / "t.csv.gz").delimiter == delimiter
    assert TextFormat().of(write(tmp_path / "t.tab", text)).delimiter == "\t"


@pytest.mark.parametrize(
    ("text", "decimal"),
    [
        ("a;b\n1,5;2\n", ","),
        ("a\tb\n-0,123\tx\n", ","),
        ("a;b\n1,5e-3;2\n", ","),
        ("a;b\n1,234;2\n", "."),  # perhaps a thousand
        ("a;b\n1,5;2.5\n", "."),
        ("a;b\n1,5;12.03.2024\n", ","),
        ("a;b\n1;2\n", "."),
        ("a,b\n1,5\n", "."),
        ("1,5;b\n1;2\n", "."),
        ('a;b\n"' + "1" * 200_000 + '";1\n', "."),
    ],
)
def test_decimal_commas_are_found_where_it_is_sure(tmp_path, text, decimal):
    assert TextFormat().of(write(tmp_path / "t.csv", text)).decimal == decimal


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_other_encodings(tmp_path, encoding):
    path = write(tmp_path / "t.csv", "größe;b\n1,5;2\n3;4\n", encoding)
    given = TextFormat(encoding=encoding if encoding == "cp1252" else None)
    found = given.of(path)
    assert (found.delimiter, found.decimal) == (";", ",")
    (batch,) = read_batches(path, targets=["b"], text_format=given)
    assert batch.X.to_dict("list") == {"größe": [1.5, 3.0]}


def test_what_is_said_is_not_looked_for(tmp_path):
    given = TextFormat("|", ".", "latin-1")
    assert given.of(tmp_path / "nothing.csv") is given


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"delimiter": ";;"}, "delimiter must be one character, such as ';', got ';;'"),
        ({"decimal": "'"}, "decimal must be '.' or ',', got"),
        ({"delimiter": ",", "decimal": ","}, "delimiter must differ from decimal, got ','"),
        (
            {"encoding": "klingon"},
            "encoding must be one that Python knows, such as cp1252, got 'klingon'",
        ),
    ],
)
def test_wrong_settings(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        TextFormat(**settings)
