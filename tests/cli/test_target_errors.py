import pytest

from entangled_kernels.cli.screen import Screen
from entangled_kernels.cli.target_errors import change_in_words, error_rows, show_target_errors


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


def test_the_table(capsys):
    scores = [{"target": "y", "nmse": 0.4, "kernel_ridge_nmse": 0.5}]
    assert error_rows(scores) == [["y", 0.4, 0.5, "20.0% less error"]]
    show_target_errors(Screen(), scores)
    assert "20.0% less error" in capsys.readouterr().out
    show_target_errors(Screen(), [])
    assert capsys.readouterr().out == ""
