import pytest

from entangled_kernels.plotting import KernelClassesDisplay
from entangled_kernels.plotting.kernel_classes import REGIONS


def inside(point, region):
    (x, y), width, height = REGIONS[region][:3]
    return ((point[0] - x) / width * 2) ** 2 + ((point[1] - y) / height * 2) ** 2 < 1


def test_names_and_witnesses_are_written():
    display = KernelClassesDisplay({name: f"of {name}" for name in REGIONS}).plot()
    words = {text.get_text() for text in display.ax_.texts}
    assert words == {*REGIONS, *(f"of {name}" for name in REGIONS)}


def test_witnesses_stand_in_their_class_and_in_no_smaller_one():
    inner = {"partial trace": set(REGIONS) - {"partial trace"}, "sum of separable": {"separable"}}
    for name, (_, _, _, place, _) in REGIONS.items():
        assert inside(place, name)
        assert inside(place, "partial trace")
        assert not any(inside(place, other) for other in inner.get(name, ()))


def test_unknown_classes_are_refused():
    with pytest.raises(ValueError, match="named by"):
        KernelClassesDisplay({"odd": ""})
