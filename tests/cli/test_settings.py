import json

import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from entangled_kernels import EntangledKernelRidge
from entangled_kernels.cli.settings import settings_in_words, settings_of
from entangled_kernels.cli.text_encoding import text_encoder
from entangled_kernels.features import GaussianFeatures

NAMES = ["inlet temp", "flow, l/s", "pressure"]


@pytest.mark.parametrize(
    ("feature_map", "words"),
    [
        (None, "inputs as they are"),
        (StandardScaler(), "StandardScaler"),
        (GaussianFeatures(), "GaussianFeatures"),
        (GaussianFeatures(approximation="fourier"), "GaussianFeatures (fourier)"),
        (make_pipeline(text_encoder([]), StandardScaler()), "OneHotEncoder + StandardScaler"),
    ],
)
def test_feature_maps_by_their_steps(plant, feature_map, words):
    model = EntangledKernelRidge(feature_map).fit(plant[NAMES], plant[["net load"]])
    settings = settings_of(model)
    assert settings["features"] == words
    assert json.loads(json.dumps(settings)) == settings


def test_words():
    settings = {"features": "A", "shrinkage": 1.0, "alpha": 0.5, "gain": 1.0}
    assert settings_in_words(settings) == "A; kernel ridge, alpha 0.5"
    settings |= {"alpha": [0.1, 2.0], "gain": [1.0, 1.4]}
    assert settings_in_words(settings) == "A; kernel ridge, alpha 0.1 to 2, gain 1 to 1.4"
    settings |= {"shrinkage": 0.25, "alignment_mix": 0.5, "target_alpha": 0.01, "prediction": "entangled"}
    entangled = "entangled kernel with shrinkage 0.25, alignment mix 0.5, target alpha 0.01"
    assert settings_in_words(settings) == f"A; {entangled}; alpha 0.1 to 2, gain 1 to 1.4"
    assert "partial-trace kernel with" in settings_in_words(settings | {"prediction": "partial_trace"})
