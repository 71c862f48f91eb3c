from entangled_kernels.plotting.style import looks

METHODS = ["KRR", "OKL", "EKL", "ptrEKL", "entangled", "PLS", "extra-trees"]


def test_colour_marker_and_line_each_tell_methods_apart():
    chosen = looks(METHODS).values()
    for field in ("color", "marker", "line"):
        assert len({getattr(look, field) for look in chosen}) == len(METHODS), field


def test_a_method_looks_the_same_in_every_company():
    assert looks(["EKL"])["EKL"] == looks(["mine", "KRR", "EKL"])["EKL"] == looks(METHODS)["EKL"]


def test_names_keep_their_order_and_get_what_is_left():
    chosen = looks(["mine", "KRR", "yours"])
    assert list(chosen) == ["mine", "KRR", "yours"]
    assert len(set(chosen.values())) == 3


def test_more_names_than_looks():
    assert len(looks([str(number) for number in range(20)])) == 20
    assert set(looks([*METHODS, "mine"])) == {*METHODS, "mine"}
