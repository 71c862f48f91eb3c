"""The reader of R's files, on a file written here by the format's own rules."""

import gzip
import struct

import numpy as np
import pytest

from entangled_kernels.datasets.rda import read_rda


def integer(value):
    return struct.pack(">i", value)


def chars(text):
    return integer(9) + (integer(-1) if text is None else integer(len(text)) + text.encode("latin-1"))


def symbol(name):
    return integer(1) + chars(name)


def strings(*texts, flags=16):
    return integer(flags) + integer(len(texts)) + b"".join(map(chars, texts))


def reals(values, flags=14):
    return integer(flags) + integer(len(values)) + struct.pack(f">{len(values)}d", *values)


def integers(values):
    return integer(13) + integer(len(values)) + struct.pack(f">{len(values)}i", *values)


def attributes(**pairs):
    return b"".join(integer(1026) + symbol(name) + value for name, value in pairs.items()) + integer(254)


ATTRIBUTES = 1 << 9
HEADER = b"RDX2\nX\n" + integer(2) + integer(0) + integer(0)


def test_reads_arrays_strings_and_named_lists():
    matrix = reals(range(6), 14 | ATTRIBUTES)
    matrix += attributes(
        dim=integers([3, 2]), dimnames=integer(19) + integer(2) + integer(254) + strings("a", "b")
    )
    named = strings("u", None, flags=16 | ATTRIBUTES) + attributes(names=strings("first", "second"))
    # The second use of the symbol "names" is a reference to the first: symbols are numbered from one.
    content = integer(19 | ATTRIBUTES) + integer(2) + matrix + named
    content += integer(1026) + integer(4 << 8 | 255) + strings("matrix", "words") + integer(254)
    content = HEADER + integer(1026) + symbol("object") + content + integer(254)
    for stored in (content, gzip.compress(content)):
        found = read_rda(stored)["object"]
        np.testing.assert_array_equal(found["matrix"]["values"], [[0, 3], [1, 4], [2, 5]])
        assert found["matrix"]["dimnames"] == [None, ["a", "b"]]
        assert found["words"] == ["u", None]


def test_refuses_what_it_does_not_know():
    with pytest.raises(ValueError, match="not a file that R's save wrote"):
        read_rda(b"no such thing")
    with pytest.raises(ValueError, match="kind 3"):
        read_rda(HEADER + integer(1026) + symbol("f") + integer(3))
