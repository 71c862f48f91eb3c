"""The look of all displays: colours, markers and lines that colour-blind eyes and printers keep apart."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["BLUE", "GREY", "INK", "ORANGE", "PALE", "RC", "VERMILION", "Look", "looks"]

# Okabe and Ito's palette, which remains distinct under all common kinds of colour blindness; brown, and grey
# below, are for pictures of many curves.
BLUE, ORANGE, GREEN, VERMILION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
SKY, PURPLE, BLACK, BROWN = "#56B4E9", "#CC79A7", "#000000", "#7A4A1E"
INK, GREY, PALE = "#222222", "#767676", "#C4C4C4"

RC: dict[Any, Any] = {
    "font.size": 9.0,
    "font.family": "sans-serif",
    "axes.titlesize": 10.0,
    "axes.titleweight": "bold",
    "axes.labelsize": 9.0,
    "axes.labelcolor": INK,
    "axes.edgecolor": GREY,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.7,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 6.0,
    "text.color": INK,
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "savefig.facecolor": "white",
    "savefig.dpi": 150.0,
    "figure.dpi": 100.0,
}


class Look(NamedTuple):
    """How one of several things is drawn; each field alone tells it from the others."""

    color: str
    marker: str
    line: Any


_LOOKS = (
    Look(BLUE, "o", "-"),
    Look(VERMILION, "s", "--"),
    Look(GREEN, "^", "-."),
    Look(PURPLE, "D", ":"),
    Look(ORANGE, "v", (0, (5, 1, 1, 1, 1, 1))),
    Look(SKY, "P", (0, (8, 2))),
    Look(BLACK, "X", (0, (1, 1))),
    Look(GREY, "*", (0, (3, 1, 1, 1))),
    Look(BROWN, "h", (0, (1, 3))),
)
# Methods of the experiments look the same in every figure.
_METHODS = ("EKL", "ptrEKL", "OKL", "entangled", "PLS", "extra-trees", "KRR", "kernel-ridge")


def looks(names: list[str]) -> dict[str, Look]:
    """A look for each name: a method of the experiments has its own, others get what is left in order.

    Examples
    --------
    >>> looks(["KRR", "mine"])["KRR"].color
    '#000000'
    """
    own = {name: look for name, look in zip(_METHODS, _LOOKS, strict=False) if name in names}
    free = [look for look in _LOOKS if look not in own.values()] or list(_LOOKS)
    rest = [name for name in names if name not in own]
    own |= {name: free[place % len(free)] for place, name in enumerate(rest)}
    return {name: own[name] for name in names}
