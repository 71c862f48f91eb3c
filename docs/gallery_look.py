"""The gallery: its order, and the look of its pictures."""

import matplotlib as mpl
from cycler import cycler

from entangled_kernels.plotting.display import BLUE, GREEN, PURPLE, RC, VERMILION

ORDER = (
    "plot_paper_in_forty_lines.py",
    "plot_choose_settings.py",
    "plot_partly_measured.py",
    "plot_intervals.py",
    "plot_spectra.py",
    "plot_curves.py",
    "plot_year_of_weather.py",
    "plot_robot_arm.py",
    "plot_feature_groups.py",
    "plot_streams.py",
    "plot_text_columns.py",
    "plot_entangled_or_not.py",
    "plot_digits.py",
    "plot_causal_network.py",
)


class GalleryOrder:
    """Examples in the order above."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, name):
        """The place of an example."""
        return ORDER.index(name)


def use_house_style(gallery_settings, name):
    """Draw with the colours and lines of the displays; called before every example."""
    mpl.rcParams.update(RC)
    mpl.rcParams["axes.prop_cycle"] = cycler(color=[BLUE, VERMILION, GREEN, PURPLE])
    mpl.rcParams["figure.dpi"] = 110.0
