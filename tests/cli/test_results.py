"""Results of experiments: run, saved, shown, and put into words."""

from entangled_kernels.cli.results import (
    finding,
    pivot,
    sure_leads,
)
from entangled_kernels.storage import ExperimentResults


def test_words_on_results():
    records = [
        {"method": method, "n": n, "split": 0, "nmse": nmse, "ni": 0.0}
        for n, errors in {10: (0.5, 0.4), 20: (0.4, 0.5)}.items()
        for method, nmse in zip(("KRR", "EKL"), errors, strict=True)
    ]
    results = ExperimentResults("r", "R", records, paper=[{"method": "KRR", "n": 10, "nmse": 0.45}])
    assert finding(results) == (
        "Against kernel ridge: EKL has the same error on average (from 20.0% less error at training rows "
        "n 10 to 25.0% more error at training rows n 20)."
    )
    assert pivot(results, "nmse") == (
        ["training rows n", "KRR", "KRR (paper)", "EKL"],
        [[10, 0.5, 0.45, 0.4], [20, 0.4, None, 0.5]],
        True,
    )
    assert pivot(results, "ni")[0] == ["training rows n", "EKL"]
    assert (
        finding(ExperimentResults("r", "R", [record for record in records if record["method"] == "EKL"]))
        == ""
    )
    assert "20.0% less error." in finding(ExperimentResults("r", "R", records[:2]))


def results(paper=()):
    records = [
        {"method": method, "n": 10, "split": split, "nmse": nmse + 0.1 * split}
        for method, nmse in (("KRR", 0.5), ("EKL", 0.4))
        for split in (0, 1)
    ]
    return ExperimentResults("r", "R", records, paper=list(paper))


def test_leads_are_sure_beyond_chance_in_the_paired_difference():
    def leads(first, second, metric="nmse"):
        records = [
            {"method": method, "n": 10, "split": split, metric: value}
            for method, values in (("KRR", first), ("EKL", second))
            for split, value in enumerate(values)
        ]
        return sure_leads(ExperimentResults("r", "R", records), metric)

    assert leads([0.5, 0.9, 0.7], [0.49, 0.88, 0.69]) == {(0, "EKL")}
    # One standard error would be less than this lead.
    assert leads([0.5, 0.9, 0.7], [0.49, 0.84, 0.69]) == set()
    assert leads([0.5, 0.9, 0.7], [0.6, 0.75, 0.7]) == set()
    assert leads([0.5], [0.4]) == set()
    assert leads([0.5, 0.6], [0.4, 0.5], "accuracy") == {(0, "KRR")}
