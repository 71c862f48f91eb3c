"""Two figures from the results of partly_measured.py, which is run before.

Coverage of intervals, and errors with half of the targets given.

    python benchmarks/partly_measured_figures.py [--out FOLDER]
"""

import argparse
import json
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

from measure import RESULTS

COLOURS = {20: "#56B4E9", 40: "#0072B2", 100: "#D55E00"}
COVERAGES = {
    "marginal coverage": "each target",
    "marginal coverage, given half": "each target,\nhalf of the others given",
    "joint coverage": "all targets of a row",
    "joint coverage, given half": "all other targets of a row,\nhalf given",
}
RATIOS = {
    "given / not knowing": "not knowing",
    "/ prototype": "conditioning\nkernel ridge",
    "/ kernel ridge": "kernel ridge,\nmeasured ones as inputs",
    "/ extra trees": "extra trees,\nmeasured ones as inputs",
}


def draw(rows, columns, title, line, limits, path):
    """A panel for each column, a line for each table, a point for each n."""
    names = sorted({row["table"] for row in rows})
    figure, axes = plt.subplots(
        1, len(columns), figsize=(10, 4.4), sharey=True, layout="constrained"
    )
    for axis, (column, panel) in zip(axes, columns.items(), strict=True):
        for position, (n, colour) in enumerate(COLOURS.items()):
            of_size = [row for row in rows if row["n"] == n]
            values = np.array([row[column] for row in of_size])
            inside = (values >= limits[0]) & (values <= limits[1])
            y = np.array([names.index(row["table"]) + 0.2 * (position - 1) for row in of_size])
            axis.scatter(values[inside], y[inside], s=22, color=colour, label=f"n = {n}")
            # Values beyond the limits are triangles at the edge.
            for beyond, marker in ((values < limits[0], "<"), (values > limits[1], ">")):
                axis.scatter(
                    np.clip(values[beyond], *limits),
                    y[beyond],
                    s=30,
                    color=colour,
                    marker=marker,
                    clip_on=False,
                )
        axis.axvline(line, color="black", lw=1)
        axis.set_title(panel, fontsize=10)
        axis.set_xlim(*limits)
        axis.grid(axis="y", lw=0.4, color="0.85")
    axes[0].set_yticks(range(len(names)), names)
    axes[0].set_ylim(len(names) - 0.5, -0.5)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, ncols=3, loc="outside lower center", frameon=False)
    figure.suptitle(title, fontsize=11)
    figure.savefig(path, dpi=80)
    plt.close(figure)
    print(f"written: {path}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--name", default="partly_measured", help="name of the file in benchmarks/results"
    )
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the figures")
    options = parser.parse_args()
    mpl.use("Agg")
    options.out.mkdir(parents=True, exist_ok=True)
    tables = json.loads((RESULTS / f"{options.name}.json").read_text())["tables"]
    title = "share of new observations inside 90% intervals"
    draw(
        tables["coverage"],
        COVERAGES,
        title,
        0.9,
        (0.65, 1.0),
        options.out / "interval-coverage.png",
    )
    title = "nMSE given half of the targets, as a share of that of"
    draw(tables["given"], RATIOS, title, 1.0, (0.2, 1.4), options.out / "given-half.png")


if __name__ == "__main__":
    main()
