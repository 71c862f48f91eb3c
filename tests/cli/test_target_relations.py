import numpy as np

from entangled_kernels import EntangledKernelRidge
from entangled_kernels.cli.target_relations import output_relations, sharing_in_words, strongest_pairs


def test_relations_are_correlations_of_the_kernel(rng):
    X = rng.normal(size=(30, 4)) + 3.0
    Y = X @ rng.normal(size=(4, 3))
    model = EntangledKernelRidge(shrinkage=0.3).fit(X, Y)
    centred = X - X.mean(axis=0)
    mean = model.kernel_.diag(centred).mean(axis=0)
    expected = mean / np.sqrt(np.outer(np.diag(mean), np.diag(mean)))
    assert np.allclose(output_relations(model, X), expected)
    assert np.allclose(output_relations(EntangledKernelRidge(shrinkage=1.0).fit(X, Y), X), np.eye(3))


def test_words_for_what_is_shared():
    settings = {"shrinkage": 0.5, "prediction": "entangled"}
    correlations = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, -0.05], [0.0, -0.05, 1.0]])
    assert strongest_pairs(correlations, ["a", "b", "c"])[0] == ("a", "b", 0.9)
    words = sharing_in_words(settings, correlations, ["a", "b", "c"])
    assert words == [
        "'a' and 'b' strongly move together (correlation +0.90 in the kernel).",
        "'c' keeps to itself.",
    ]
    assert "move against each other" in sharing_in_words(settings, -correlations, ["a", "b", "c"])[0]
    assert "hardly relates" in sharing_in_words(settings, np.eye(3), ["a", "b", "c"])[0]
    assert "one target" in sharing_in_words(settings, np.eye(1), ["a"])[0]
    assert "Plain kernel ridge" in sharing_in_words(settings | {"shrinkage": 1.0}, None, ["a", "b"])[0]
    assert (
        "partial trace" in sharing_in_words(settings | {"prediction": "partial_trace"}, None, ["a", "b"])[0]
    )
    many = np.full((5, 5), 0.6) + 0.4 * np.eye(5)
    assert sharing_in_words(settings, many, list("abcde"))[-1].startswith("5 further pairs are")
    few = np.eye(4)
    few[:3, :3] = few[3, 0] = few[0, 3] = few[1, 3] = few[3, 1] = 0.6
    few[2, 3] = few[3, 2] = 0.2
    assert sharing_in_words(settings, few, list("abcd"))[-1].startswith("1 further pair is related")
