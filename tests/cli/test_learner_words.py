from types import SimpleNamespace

import numpy as np

from entangled_kernels.cli.learner_words import kernel_weights, learner_in_words, show_weights
from entangled_kernels.cli.screen import Screen


def test_weights_of_kernels_and_views(capsys):
    kernels = SimpleNamespace(kernel_names_=["a", "b"], kernel_weights_=np.array([[0.1, 0.3], [0.9, 0.7]]))
    views = SimpleNamespace(view_names_=["a", "b"], view_weights_=np.array([2.0, 1.0]))
    assert [name for name, _ in kernel_weights(kernels)] == ["b", "a"]
    np.testing.assert_allclose([weight for _, weight in kernel_weights(kernels)], [0.8, 0.2])
    assert kernel_weights(views) == [("a", 2.0), ("b", 1.0)]
    assert kernel_weights(SimpleNamespace()) == []
    show_weights(Screen(), SimpleNamespace())
    assert capsys.readouterr().out == ""
    show_weights(Screen(), views)
    assert "Weight of every view" in capsys.readouterr().out


def test_sentences():
    names = ["x", "y"]
    network = SimpleNamespace(granger_=np.array([[9.0, 0.5], [0.1, 9.0]]))
    assert learner_in_words(network, names) == ["'y' acts on 'x' most; all influences are below."]
    alone = SimpleNamespace(granger_=np.diag([1.0, 2.0]))
    assert learner_in_words(alone, names) == ["No variable acts on another."]
    assert learner_in_words(SimpleNamespace(granger_=np.ones((1, 1))), ["x"]) == [
        "No variable acts on another."
    ]
    weighed = SimpleNamespace(kernel_weights_=np.ones(2), output_kernel="diagonal")
    assert "with its own weights" in learner_in_words(weighed, names)[0]
    for law, words in (("divergence_free", "one divergence-free field"), ("decomposable", "random Fourier")):
        field = SimpleNamespace(features_=SimpleNamespace(kernel=law))
        assert words in learner_in_words(field, names)[0]
    shared = SimpleNamespace(kernel_weights_=np.ones(2), output_kernel="shared")
    assert learner_in_words(shared, names) is None
