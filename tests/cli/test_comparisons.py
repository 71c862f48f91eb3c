from entangled_kernels.cli.results import far_off_splits, method_table, winner_in_words
from entangled_kernels.storage import ExperimentResults


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
        "Best with 20 training rows: extra-trees, nMSE 0.450; 10.6% less error than the next, PLS, more than "
        "chance would give, and 18.2% less error than KRR."
    )


def test_a_lead_within_noise_is_called_so():
    close = {20: {"KRR": [0.5, 0.6, 0.55], "EKL": [0.6, 0.5, 0.52]}}
    assert winner_in_words(results(close)).endswith("than the next, KRR, which may be chance.")
    assert method_table(results(close))[2] == set()


def test_methods_stand_in_rows_the_best_first():
    columns, rows, sure, digits = method_table(results(SURE))
    assert columns == ["method", "nMSE, 10 rows", "nMSE, 20 rows", "against KRR", "seconds to fit"]
    assert [row[0] for row in rows] == ["extra-trees", "PLS", "KRR"]
    assert rows[1][1] is None
    assert rows[0][3] == "18.2% less error"
    assert sure == {(0, "nMSE, 20 rows")}
    assert set(digits) == set(columns)
    assert method_table(results({5: {"EKL": [0.5]}}, seconds=False))[0] == ["method", "nMSE, 5 rows"]


def test_partitions_far_off_are_told():
    assert far_off_splits(results(SURE)) == []
    odd = {10: {"KRR": [0.5, 7.0, 0.4, 0.6], "EKL": [0.5, 0.6, 0.5, 0.6]}}
    assert far_off_splits(results(odd)) == [
        "KRR, 10 rows: partition 1 has nMSE 7, the median of the others is 0.5."
    ]
