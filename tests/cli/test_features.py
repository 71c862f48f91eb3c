import pytest
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from entangled_kernels.cli.features import FEATURES, feature_maps
from entangled_kernels.features import GaussianFeatures, default_feature_maps


@pytest.mark.parametrize("name", FEATURES)
def test_maps_by_name(name):
    expected = {
        "auto": default_feature_maps(3),
        "linear": [StandardScaler()],
        "rbf": [GaussianFeatures(random_state=3)],
        "fourier": [GaussianFeatures(approximation="fourier", random_state=3)],
    }[name]
    maps = feature_maps(name, [], seed=3)
    assert [repr(one) for one in maps] == [repr(one) for one in expected]
    assert [one.get_params() for one in maps] == [one.get_params() for one in expected]


@pytest.mark.parametrize("name", FEATURES)
def test_text_is_encoded_before_each_map(name):
    plain, encoded = feature_maps(name, [], seed=0), feature_maps(name, ["town"], seed=0)
    assert [repr(one.steps[-1][1]) for one in encoded] == [repr(one) for one in plain]
    for one in encoded:
        assert len(one.steps) == 2
        assert one.steps[0][1].transformers[0][2] == ["town"]
        clone(one)
