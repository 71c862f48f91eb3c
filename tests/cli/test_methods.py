import pytest

from entangled_kernels.cli.errors import CommandError
from entangled_kernels.cli.methods import METHODS, SETTINGS, choose_method


def test_settings_are_read():
    assert choose_method("entangled", None, None).settings == {}
    choice = choose_method("multiple-kernels", ["norm=2", "output_kernel=own"], ['a=x,"y, z"', "b = w*"])
    assert choice.settings == {"norm": 2.0, "output_kernel": "own"}
    assert choice.groups == {"a": ["x", "y, z"], "b": ["w*"]}
    assert choose_method("var", ["lags=3,kernel=additive"], None).settings == {
        "lags": 3,
        "kernel": "additive",
    }
    assert choose_method("multi-view", ["sparse=No"], ["a=x"]).settings == {"sparse": False}
    assert set(SETTINGS) == set(METHODS)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("svm", None, None), "--method must be one of entangled, output-kernel, .*, var, got 'svm'"),
        (("var", ["size=3"], None), "--method var has kernel, lags, norm, got 'size'"),
        (("entangled", ["alpha=3"], None), "--method entangled has no settings, got 'alpha'"),
        (("var", ["lags=three"], None), "--set lags must be a whole number, got 'three'"),
        (
            ("output-kernel", ["penalty=trace+big"], None),
            "penalty must be one of .* with [+], got 'trace.big'",
        ),
        (("multi-view", ["sparse=perhaps"], ["a=x"]), "--set sparse must be true or false, got 'perhaps'"),
        (("var", ["lags"], None), "--set must be NAME=VALUE, got 'lags'"),
        (("var", None, ["a=x"]), "--input-group needs --method multiple-kernels or multi-view, got var"),
        (("multi-view", None, None), "--method multi-view needs views, such as --input-group"),
        (("multi-view", None, ["a=x", "a=y"]), "--input-group 'a' is named twice"),
        (("multi-view", None, ["a="]), "--input-group must be NAME=VALUE, got 'a='"),
    ],
)
def test_wrong_words(arguments, sentence):
    with pytest.raises(CommandError, match=sentence):
        choose_method(*arguments)
