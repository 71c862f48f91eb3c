import base64
import io
import re

import numpy as np
import pytest
from matplotlib.figure import Figure

from entangled_kernels.plotting.page import embedded


@pytest.fixture
def png(small_figure):
    file = io.BytesIO()
    small_figure().savefig(file, format="png", dpi=50)
    return file.getvalue()


def test_small_figures_are_svg_without_dates(small_figure):
    source, width, height = embedded(small_figure())
    assert source.startswith("data:image/svg+xml;base64,")
    svg = base64.b64decode(source.split(",")[1]).decode()
    assert "<dc:date>" not in svg
    assert "<text" not in svg  # letters are shapes: no font is needed to read them
    points = [
        float(number)
        for number in re.search(r'width="([\d.]+)pt" height="([\d.]+)pt"', svg).groups()
    ]
    assert [width, height] == pytest.approx([size * 96 / 72 for size in points], abs=2)


def test_large_figures_are_png():
    figure = Figure(figsize=(4, 3))
    figure.add_subplot().scatter(*np.random.default_rng(0).random((2, 6000)))
    source, width, height = embedded(figure)
    assert source.startswith("data:image/png;base64,")
    assert 300 < width < 400
    assert 200 < height < 300


def test_png_in_bytes_or_in_a_file(tmp_path, png):
    path = tmp_path / "figure.png"
    path.write_bytes(png)
    assert embedded(png) == embedded(path) == embedded(str(path))
    assert embedded(png)[1:] == (200, 150)


@pytest.mark.parametrize("bad", [b"GIF89a", 3, None])
def test_anything_else_is_refused(bad):
    with pytest.raises(TypeError, match="figure must be a matplotlib Figure, or a PNG"):
        embedded(bad)
