"""Tables and a figure from the records of accuracy.py, which calls this module at its end."""

import numpy as np

from measure import RESULTS, print_table

SIZES = (12, 20, 40, 100)
LEAST_SHOWN, MOST_SHOWN = 0.5, 2.0
BASELINE, PROCESS = "kernel ridge", "GP by evidence"
PEERS = (PROCESS, "extra trees", "CatBoost")


def ratios(records, features, method, baseline_features, baseline):
    """Log ratios of nMSE to a baseline on the same splits, by (table, n)."""

    def values(kind, name):
        chosen = (r for r in records if r["features"] == kind and r["method"] == name)
        return {(r["table"], r["n"], r["split"]): r["nmse"] for r in chosen}

    ours, theirs = values(features, method), values(baseline_features, baseline)
    by_key = {}
    for table, n, split in ours.keys() & theirs.keys():
        ratio = np.log(ours[table, n, split] / theirs[table, n, split])
        by_key.setdefault((table, n), {})[split] = ratio
    return {
        key: [by_split[s] for s in sorted(by_split)] for key, by_split in sorted(by_key.items())
    }


def beside_best_peer(records, method="auto"):
    """nMSE of a method and its peers by table and n, and the ratio to the best peer of each table."""
    errors = {}
    for record in records:
        if record["features"] == "own" and record["method"] in (method, *PEERS):
            errors.setdefault((record["table"], record["n"]), {}).setdefault(
                record["method"], []
            ).append(np.log(record["nmse"]))
    rows = []
    for (table, n), logs in sorted(errors.items()):
        means = {name: float(np.mean(values)) for name, values in logs.items()}
        if method not in means or PROCESS not in means:
            continue
        peers = {name: value for name, value in means.items() if name != method}
        best = min(peers, key=peers.get)
        row = {"table": table, "n": n, method: float(np.exp(means[method]))}
        row |= {name: float(np.exp(peers[name])) if name in peers else None for name in PEERS}
        row |= {"best peer": best, "ratio to it": float(np.exp(means[method] - peers[best]))}
        row["ratio to the process"] = float(np.exp(means[method] - peers[PROCESS]))
        rows.append(row)
    return rows


def interval(logs, draws=2000):
    """Ratio with its bootstrap interval of 95% over splits."""
    logs = np.array(logs)
    means = np.random.default_rng(0).choice(logs, size=(draws, len(logs))).mean(axis=1)
    return np.exp(logs.mean()), *np.exp(np.percentile(means, [2.5, 97.5]))


def ratio_table(records, features, baseline_features, baseline):
    """A row for every table, n and method, and geometric means at the foot."""
    methods = list(dict.fromkeys(r["method"] for r in records if r["features"] == features))
    rows, means = [], {}
    for method in methods:
        if (features, method) == (baseline_features, baseline):
            continue
        for (table, n), logs in ratios(
            records, features, method, baseline_features, baseline
        ).items():
            ratio, low, high = interval(logs)
            mine = [
                r
                for r in records
                if (r["features"], r["method"], r["table"], r["n"]) == (features, method, table, n)
            ]
            rows.append(
                {
                    "table": table,
                    "n": n,
                    "method": method,
                    "nMSE": float(np.mean([r["nmse"] for r in mine])),
                    "ratio": float(ratio),
                    "low": float(low),
                    "high": float(high),
                    "fit s": float(np.median([r["fit_seconds"] for r in mine])),
                }
            )
            for group in (
                f"n = {n}",
                "n <= 40" if n <= 40 else "n = 100 ",
                "all n",
                f"{table}, n >= 20",
            ):
                if group.endswith(">= 20") and n < 20:
                    continue
                means.setdefault((method, group), []).append(float(np.mean(logs)))
            if table in ("weather", "uwave", "bilinear"):
                means.setdefault((method, "weather, uwave, bilinear"), []).append(
                    float(np.mean(logs))
                )
    order = [
        "n = 12",
        "n = 20",
        "n = 40",
        "n = 100",
        "n <= 40",
        "all n",
        "weather, uwave, bilinear",
    ]
    foot = [
        {"method": method}
        | {
            group: float(np.exp(np.mean(means[method, group])))
            for group in order
            if (method, group) in means
        }
        for method in methods
        if any(key[0] == method for key in means)
    ]
    return rows, foot


def draw(records, path):
    """Ratios to kernel ridge on the same features, one panel for each kind of features."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    panels = [("linear", "linear", BASELINE), ("rbf", "rbf", BASELINE), ("own", "own", PROCESS)]
    panels = [panel for panel in panels if any(r["features"] == panel[0] for r in records)]
    figure, axes = plt.subplots(
        1, len(panels), figsize=(5.2 * len(panels), 5.2), squeeze=False, layout="tight"
    )
    colours = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
    for axis, (features, base_features, base) in zip(axes[0], panels, strict=True):
        names = dict.fromkeys(r["method"] for r in records if r["features"] == features)
        methods = [name for name in names if name != base]
        for position, method in enumerate(methods):
            logs = ratios(records, features, method, base_features, base)
            for size, n in zip((18, 32, 50, 75), SIZES, strict=True):
                offset = position + 0.18 * (SIZES.index(n) - 1.5)
                for ratio in (interval(values)[0] for (_, m), values in logs.items() if m == n):
                    inside = LEAST_SHOWN <= ratio <= MOST_SHOWN
                    axis.scatter(
                        np.clip(ratio, LEAST_SHOWN, MOST_SHOWN),
                        offset,
                        s=size,
                        color=colours[position % 7],
                        marker="o" if inside else ">" if ratio > 1 else "<",
                        alpha=0.75,
                        lw=0,
                        clip_on=inside,
                    )
        axis.axvline(1.0, color="black", lw=1)
        axis.set_xscale("log")
        axis.set_xlim(LEAST_SHOWN, MOST_SHOWN)
        axis.set_xticks([0.5, 0.7, 1.0, 1.4, 2.0], ["0.5", "0.7", "1", "1.4", "2"])
        axis.minorticks_off()
        axis.set_yticks(range(len(methods)), methods)
        axis.invert_yaxis()
        axis.set_xlabel(f"nMSE / nMSE of {base}")
        axis.set_title({"own": "own features"}.get(features, f"{features} features"))
    figure.suptitle("One point per table; larger points have more training rows (12, 20, 40, 100)")
    figure.savefig(path, dpi=150)


def report(records, name):
    for features, base_features, base in (
        ("linear", "linear", BASELINE),
        ("rbf", "rbf", BASELINE),
        ("rbf, width selected", "rbf, width selected", BASELINE),
        ("own", "rbf", BASELINE),
        ("own", "own", PROCESS),
    ):
        rows, foot = ratio_table(records, features, base_features, base)
        if rows:
            print_table(f"{features} features: ratio to {base} ({base_features})", rows)
            print_table("geometric means of the ratio over tables", _filled(foot))
    if rows := beside_best_peer(records):
        print_table("beside the best peer of every table", _filled(rows))
        for n in sorted({row["n"] for row in rows}):
            for column in ("ratio to it", "ratio to the process"):
                mean = np.exp(np.mean([np.log(row[column]) for row in rows if row["n"] == n]))
                print(f"n = {n}, geometric mean of the {column}: {mean:.3f}")
    if rows := promises(records):
        print_table("cv_score_ over the error on test rows", rows)
    draw(records, RESULTS / f"{name}.png")


def promises(records):
    """Cross-validated error of a search over its error on the test rows, by n and over all."""
    pairs = [(r["n"], r["promised / fresh"]) for r in records if "promised / fresh" in r]
    rows = []
    for n in [*sorted({n for n, _ in pairs}), "all"]:
        values = np.array([ratio for size, ratio in pairs if n in (size, "all")])
        if len(values):
            row = {"n": n, "splits": len(values), "mean": float(values.mean())}
            row |= {
                "geometric mean": float(np.exp(np.log(values).mean())),
                "median": float(np.median(values)),
            }
            rows.append(row)
    return rows


def _filled(rows):
    """Rows with the same keys, empty where a row has no value."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    return [{key: row.get(key, "") for key in keys} for row in rows]
