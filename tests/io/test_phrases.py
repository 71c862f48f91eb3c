from entangled_kernels.io.tables import counted, quoted


def test_counted():
    assert [counted(n, "row") for n in (0, 1, 2, 12_345)] == [
        "0 rows",
        "1 row",
        "2 rows",
        "12,345 rows",
    ]


def test_quoted():
    assert quoted(["a"]) == "'a'"
    assert quoted(["a", "b"], "or") == "'a' or 'b'"
    assert quoted(list("abcde")) == "'a', 'b', 'c', 'd' and 'e'"
    assert quoted(list("abcdef")) == "'a', 'b', 'c', 'd', 'e' and 1 more"
