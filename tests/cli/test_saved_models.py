import pytest

from entangled_kernels import EntangledKernelRidge, OutputKernelRidge
from entangled_kernels.cli.errors import CommandError
from entangled_kernels.cli.models import inputs_of, open_saved_model, targets_of
from entangled_kernels.io import ModelFileError, save_model

NAMES = ["inlet temp", "flow, l/s", "pressure"]
TARGETS = ["net load", "peak load (kW)"]


@pytest.mark.parametrize("kind", [EntangledKernelRidge, OutputKernelRidge])
def test_names_of_frames(plant, folder, kind):
    save_model(kind().fit(plant[NAMES], plant[TARGETS]), "m.model")
    saved = open_saved_model(folder / "m.model")
    assert inputs_of(saved, "m.model") == NAMES
    assert targets_of(saved) == TARGETS


@pytest.mark.parametrize("kind", [EntangledKernelRidge, OutputKernelRidge])
@pytest.mark.parametrize("targets", [1, 2])
def test_names_are_made_up_for_targets_alone(plant, folder, kind, targets):
    Y = plant[TARGETS[:targets]].to_numpy()
    save_model(kind().fit(plant[NAMES].to_numpy(), Y[:, 0] if targets == 1 else Y), "m.model")
    saved = open_saved_model(folder / "m.model")
    assert targets_of(saved) == ["output0", "output1"][:targets]
    with pytest.raises(ModelFileError, match=r"m\.model does not know the names of its inputs"):
        inputs_of(saved, "m.model")


def test_no_such_file(folder):
    with pytest.raises(CommandError, match="there is no file"):
        open_saved_model(folder / "m.model")
