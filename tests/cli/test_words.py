"""Facts about results, models and tables in words."""

from dataclasses import replace

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from entangled_kernels.cli.results import finding, method_table, pivot, sure_leads, winner_in_words
from entangled_kernels.cli.tables import MissingTargets
from entangled_kernels.cli.words import (
    change_in_words,
    explanation_in_words,
    information_in_words,
    input_table,
    settings_in_words,
)
from entangled_kernels.io import ExperimentResults
from entangled_kernels.model import Explanation


def test_strongest_pairs_come_first():
    information = np.array([[1.0, 0.2, 0.61], [0.2, 1.0, 0.04], [0.61, 0.04, 1.0]])
    assert information_in_words(information, ["zinc", "tin", "cadmium"]) == [
        "Measuring 'zinc' removes 61% of the uncertainty of 'cadmium', and the other way round.",
        "Measuring 'zinc' removes 20% of the uncertainty of 'tin', and the other way round.",
    ]


def test_unknown_noise_is_said_to_be_unknown():
    size = np.array([[0.1], [2.0]])
    known = Explanation(
        ["a", "b"], ["y"], size, size, size / 2, np.array([0.2, 0.1]), np.ones(1), "gradient"
    )
    assert explanation_in_words(known)[0].startswith("'b' matters")
    assert "importance by chance" in input_table(known).columns
    unknown = replace(known, noise=np.full((2, 1), np.nan), importance_noise=np.full(2, np.nan))
    (sentence,) = explanation_in_words(unknown)
    assert "was not computed" in sentence
    columns, rows, *_ = input_table(unknown)
    assert columns == ["input", "importance", "target most affected", "effect on it"]
    assert [row[0] for row in rows] == ["b", "a"]


def test_settings_name_the_rank_of_predictions():
    settings = {
        "features": "StandardScaler",
        "shrinkage": 1.0,
        "alignment_mix": 0.0,
        "target_alpha": 0.0,
        "prediction": "reduced_rank",
        "rank": 2,
        "alpha": 0.5,
    }
    words = "StandardScaler; kernel ridge, alpha 0.5"
    assert settings_in_words(settings) == f"{words}, predictions of rank 2"
    assert settings_in_words(settings | {"rank": None}) == words


@pytest.mark.parametrize(
    ("error", "reference", "words"),
    [
        (0.5, 0.5, "the same error"),
        (0.4, 0.5, "20.0% less error"),
        (0.6, 0.5, "20.0% more error"),
        (5.5, 0.5, "11 times the error"),
        (1.8e-7, 1e-13, "1.8e+06 times the error"),
        (0.5, 0.0, "-"),
        (None, 0.5, "-"),
        (0.5, None, "-"),
    ],
)
def test_changes(error, reference, words):
    assert change_in_words(error, reference) == words


def results(errors, seconds=True):
    """Errors by size, method and partition."""
    records = [
        {"method": method, "n": n, "split": split, "nmse": value}
        | ({"fit_seconds": 0.1 * n} if seconds else {})
        for n, methods in errors.items()
        for method, values in methods.items()
        for split, value in enumerate(values)
    ]
    return ExperimentResults("r", "R", records)


SURE = {
    10: {"KRR": [0.5, 0.6, 0.55], "extra-trees": [0.6, 0.5, 0.52]},
    20: {"KRR": [0.5, 0.6, 0.55], "PLS": [0.46, 0.55, 0.5], "extra-trees": [0.4, 0.5, 0.45]},
}


def test_the_winner_is_named_whatever_it_is():
    assert winner_in_words(results(SURE)) == (
        "Best with 20 training rows: extra-trees, nMSE 0.450; 10.6% less error than the next best, "
        "PLS, more than chance would give, and 18.2% less error than KRR."
    )
    equal = results({20: {"PLS": [0.5, 0.5], "KRR": [0.5, 0.5]}})
    assert "the same error as the next best, KRR" in winner_in_words(equal)


def test_methods_stand_in_rows_the_best_first():
    (columns, rows, *_), sure = method_table(results(SURE))
    assert columns == ["method", "nMSE, 10 rows", "nMSE, 20 rows", "against KRR", "seconds to fit"]
    assert [row[0] for row in rows] == ["extra-trees", "PLS", "KRR"]
    assert rows[1][1] is None
    assert rows[0][3] == "18.2% less error"
    assert sure == {(0, "nMSE, 20 rows")}
    alone, _ = method_table(results({5: {"EKL": [0.5]}}, seconds=False))
    assert alone.columns == ["method", "nMSE, 5 rows"]


def test_learned_kernels_against_kernel_ridge():
    errors = {10: {"KRR": [0.5], "EKL": [0.4]}, 20: {"KRR": [0.4], "EKL": [0.5]}}
    found = results(errors, seconds=False)
    assert finding(found) == (
        "Against kernel ridge: EKL has the same error on average (from 20.0% less error at "
        "training rows n 10 to 25.0% more error at training rows n 20)."
    )
    found.paper.append({"method": "KRR", "n": 10, "nmse": 0.45})
    columns = ["training rows n", "KRR", "KRR (paper)", "EKL"]
    assert pivot(found, "nmse") == (columns, [[10, 0.5, 0.45, 0.4], [20, 0.4, None, 0.5]], True)
    assert finding(results({10: {"EKL": [0.4]}})) == ""
    assert "20.0% less error." in finding(results({10: errors[10]}))


def test_leads_are_sure_beyond_chance_in_the_paired_difference():
    def leads(first, second):
        return sure_leads(results({10: {"KRR": first, "EKL": second}}))

    assert leads([0.5, 0.9, 0.7], [0.49, 0.88, 0.69]) == {(0, "EKL")}
    # One standard error would be less than this lead.
    assert leads([0.5, 0.9, 0.7], [0.49, 0.84, 0.69]) == set()
    assert leads([0.5, 0.9, 0.7], [0.6, 0.75, 0.7]) == set()
    assert leads([0.5], [0.4]) == set()
    assert sure_leads(results({10: {"KRR": [0.5, 0.6], "EKL": [0.4, 0.5]}}), "fit_seconds") == set()


TARGETS = pd.DataFrame({"zinc": [1.0, None, None, 4.0], "lead": [1.0, 2.0, None, None], "tin": 0.5})


@pytest.mark.parametrize("parts", [1, 2, 4])
def test_counts_do_not_depend_on_the_parts(parts):
    Y = TARGETS.assign(tin=[0.5, 0.5, None, 0.5])
    blanks = MissingTargets()
    for part in np.array_split(np.arange(4), parts):
        blanks.count(Y.iloc[part])
    assert blanks == MissingTargets({"zinc": 1, "lead": 1}, 4, 1)


def test_dask_tables_are_counted_alike():
    here, there = MissingTargets(), MissingTargets()
    here.count(TARGETS)
    there.count(dd.from_pandas(TARGETS, npartitions=2))
    assert here == there == MissingTargets({"zinc": 2, "lead": 2}, 4, 0)
