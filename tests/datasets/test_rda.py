"""The reader of R's files, on a file written here by the format's own rules."""

import gzip

import numpy as np
import pytest

from datasets.rda_files import ATTRIBUTES, HEADER, attributes, integer, integers, reals, strings, symbol
from entangled_kernels.datasets.rda import read_rda


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
