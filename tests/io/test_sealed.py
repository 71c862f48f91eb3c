"""The container of models and checkpoints."""

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entangled_kernels.files import read_sealed, write_sealed


class Refused(ValueError):
    pass


def test_what_is_written_comes_back(tmp_path):
    header = {"format": 3, "numbers": [0.1, 1e-300], "text": "\u00fc\n"}
    write_sealed(tmp_path / "file", "thing", header, b"a\nb\0")
    assert read_sealed(tmp_path / "file", "thing", 3, Refused) == (header, b"a\nb\0")
    assert (tmp_path / "file").read_bytes().startswith(b"entangled-kernels thing\n{")


@given(st.data())
def test_any_change_is_noticed(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("sealed") / "file"
    write_sealed(path, "thing", {"format": 1}, bytes(range(50)))
    content = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    change = data.draw(st.sampled_from(["bits", "cut", "added"]))
    if change == "bits":
        content[place] ^= data.draw(st.integers(1, 255))
    elif change == "cut":
        del content[place:]
    else:
        content[place:place] = data.draw(st.binary(min_size=1, max_size=50))
    path.write_bytes(content)
    with pytest.raises(Refused):
        read_sealed(path, "thing", 1, Refused)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty, not a thing file"),
        (b"entangled-ker", "is damaged: it was cut short"),
        (b"something else altogether", "is not a thing file"),
        (b"entangled-kernels other\n{}\n", "is not a thing file"),
    ],
)
def test_other_files_are_refused(tmp_path, content, message):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(Refused, match=message):
        read_sealed(tmp_path / "file", "thing", 1, Refused)


@pytest.mark.parametrize(
    "header", ["[]", "3", '{"format": "1"}', "{", "[" * 100_000, '{"format": null}']
)
def test_a_sealed_file_may_hold_anything(tmp_path, header):
    body = b"entangled-kernels thing\n" + header.encode() + b"\npayload"
    (tmp_path / "file").write_bytes(body + hashlib.sha256(body).digest())
    with pytest.raises(Refused, match="it has no header"):
        read_sealed(tmp_path / "file", "thing", 1, Refused)


@pytest.mark.parametrize("software", [{"entangled-kernels": "9.9"}, None, "text", []])
def test_another_format_names_its_writer(tmp_path, software):
    header = json.dumps({"format": 2, "software": software}).encode()
    body = b"entangled-kernels thing\n" + header + b"\n"
    (tmp_path / "file").write_bytes(body + hashlib.sha256(body).digest())
    writer = "9.9" if isinstance(software, dict) else "of unknown version"
    with pytest.raises(
        Refused, match=f"format 2, written by entangled-kernels {writer}; .* upgrade"
    ):
        read_sealed(tmp_path / "file", "thing", 1, Refused)
