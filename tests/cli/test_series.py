import numpy as np

from entangled_kernels.cli.screen import Screen
from entangled_kernels.cli.series import network_frame, show_network


def test_networks(capsys):
    strength = np.array([[0.1, 0.5], [0.0, 0.2]])
    assert network_frame(strength, ["x", "y"]).to_dict("list") == {
        "influence on": ["x", "y"],
        "x": [0.1, 0.0],
        "y": [0.5, 0.2],
    }
    show_network(Screen(), strength, ["x", "y"])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line for line in lines if line and line[-1].startswith("0.")] == [
        ["y", "x", "0.5"],
        ["y", "y", "0.2"],
        ["x", "x", "0.1"],
    ]
