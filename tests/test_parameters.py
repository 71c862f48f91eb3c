"""Checks of arguments: errors name the argument and what it got, and warnings the caller's line."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest

from entangled_kernels import EntangledKernelRidgeCV
from entangled_kernels.parameters import (
    check_choice,
    check_feature_map,
    check_flag,
    check_fraction,
    check_grid,
    check_groups,
    check_integer,
    check_numeric_columns,
    check_positive,
    check_range,
    check_rank,
    check_rank_fits,
    check_weights,
    naming_columns,
)


@pytest.mark.parametrize(
    ("error", "message", "check", "arguments"),
    [
        (ValueError, "way must be .*got 'x'", check_choice, ("way", "x", ["a", "b"])),
        (ValueError, "way must be .*got 3", check_choice, ("way", 3, ["a"])),
        (ValueError, "share must be .*got 1.5", check_fraction, ("share", 1.5)),
        (TypeError, "share must be .*got '1' of type str", check_fraction, ("share", "1")),
        (ValueError, "share must be .*got nan", check_fraction, ("share", np.nan)),
        (ValueError, "size must be .*got 0", check_positive, ("size", 0)),
        (TypeError, "size must be .*got True of type bool", check_positive, ("size", True)),
        (ValueError, "size must be .*got 1000", check_positive, ("size", 10**400)),
        (TypeError, "count must be .*got 2.0", check_integer, ("count", 2.0, 1)),
        (ValueError, "count must be .*got 0", check_integer, ("count", 0, 1)),
        (ValueError, "count must be .*got -1000", check_integer, ("count", -(10**400), 1)),
        (TypeError, "flag must be .*got 1 of type int", check_flag, ("flag", 1)),
        (ValueError, "rank must be .*got 0", check_rank, (0,)),
        (ValueError, "rank must be .*got 1.5", check_rank, (1.5,)),
        (ValueError, "rank must be .*full rank 6 .*got 7", check_rank_fits, (7, 3, 2)),
        (TypeError, "grid must be .*got 'ab'", check_grid, ("grid", "ab")),
        (ValueError, "grid must hold .*got none", check_grid, ("grid", [])),
        (TypeError, "feature_map must be .*got 'rbf'", check_feature_map, ("rbf",)),
        (ValueError, "X must have values between", check_range, ("X", np.array([1e80]))),
        (ValueError, "X must have values between", check_range, ("X", np.array([1e-80]))),
        (ValueError, r"sample_weight must .*got shape \(1,\)", check_weights, ([1.0], 2)),
        (ValueError, "sample_weight must .*got 'w'", check_weights, ("w", 2)),
        (ValueError, "sample_weight must .*got zero", check_weights, ([0.0, 0.0], 2)),
    ],
)
def test_errors_name_the_argument_and_what_it_got(error, message, check, arguments):
    with pytest.raises(error, match=message):
        check(*arguments)


def test_valid_arguments_pass():
    check_choice("way", "a", ["a", "b"])
    check_positive("size", np.float32(0.0), zero_allowed=True)
    check_integer("count", np.int64(3), low=3)
    check_flag("flag", np.bool_(True))
    for rank in (None, 3, np.int64(3), 0.5, 1.0):
        check_rank(rank)
        check_rank_fits(rank, 3, 2)
    check_range("X", np.zeros(3), smallest=0.0)
    assert check_grid("grid", iter([1, 2])) == [1, 2]


def test_weights_become_an_array():
    assert check_weights(None, 2) is None
    np.testing.assert_array_equal(check_weights(2, 3), [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(check_weights([0, 0], 2, all_zero=True), [0.0, 0.0])


def test_columns_of_text_are_named():
    frame = pd.DataFrame({"size": [1.0, 2.0], "colour": ["red", "blue"]})
    with pytest.raises(ValueError, match="got text in 'colour'; leave these columns out"):
        check_numeric_columns(frame)
    check_numeric_columns(frame[["size"]])
    check_numeric_columns(frame.to_numpy())


TABLE = pd.DataFrame({"a": [1.0, np.nan], "b": ["x", "y"], "c": [1, 2]})


@pytest.mark.parametrize(
    ("message", "rows", "expected"),
    [
        ("Input X contains NaN.\nLong advice.", TABLE, "contains NaN in column 'a'"),
        ("Input X contains NaN.", TABLE[["a", "c"]].astype(object), "contains NaN in column 'a'"),
        ("could not convert string to float: 'x'", TABLE, "got text in column 'b'"),
        ("n_components is too large", TABLE, "n_components is too large"),
        ("X has NaN in 'a'", TABLE, "X has NaN in 'a'"),
        ("Input X contains NaN.", TABLE.to_numpy(), "Input X contains NaN."),
        ("Input X contains NaN.", pd.DataFrame(np.full((2, 7), np.nan)), "3, 4 and 2 more"),
    ],
)
def test_columns_are_named_in_errors_about_them(message, rows, expected):
    with pytest.raises(ValueError, match=re.escape(expected)), naming_columns(rows):
        raise ValueError(message)


def test_groups_are_numbers_or_texts():
    assert check_groups([1, 2, 1], 3).dtype.kind == "i"
    assert check_groups(pd.Series([1, 2], dtype=object), 2).tolist() == [1, 2]
    assert check_groups(pd.Series(["a", "b"], dtype="category"), 2).tolist() == ["a", "b"]
    assert check_groups(np.array([["a"], ["b"]]), 2).tolist() == ["a", "b"]
    assert check_groups(np.array([1, "a"], dtype=object), 2).tolist() == ["1", "a"]
    for missing in (
        ["a", ""],
        pd.Series(["a", ""], dtype=object),
        [1.0, np.nan],
        [None, "a"],
        np.array(["NaT", "2024-05-31"], dtype="M8[D]"),
    ):
        with pytest.raises(ValueError, match="groups must hold"):
            check_groups(missing, 2)
    with pytest.raises(ValueError, match=r"groups must .*got shape \(3,\)"):
        check_groups([1, 2, 3], 2)


def test_warnings_point_at_the_line_outside_of_the_package(tmp_path, rng):
    caller = tmp_path / "caller.py"
    caller.write_text(
        "def call(model, X, Y):\n"
        "    model.fit(X, Y)\n"
        "    model.predict_interval(X, 0.999)\n"
        "    model.predict(1e9 * X)\n"
        "    model.partial_fit(X, Y)\n"
    )
    names = {}
    exec(compile(caller.read_text(), str(caller), "exec"), names)
    X, Y = rng.normal(size=(40, 2)), rng.normal(size=(40, 2))
    model = EntangledKernelRidgeCV(None, alphas=[1e-9, 1e-8], cv=3, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        names["call"](model, X, Y)
    lines = {(warning.filename, warning.lineno) for warning in caught}
    assert lines == {(str(caller), line) for line in (2, 3, 4, 5)}
