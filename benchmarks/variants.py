"""Variants of the published objective and ascent: which of them gives the paper's errors of EKL?

Each variant changes one part of the algorithm as published: objective, units, start or steps. Each
is measured with lambda chosen by cross-validation, with lambda 1, and with the lambda that is best
on the test rows, which is no fair choice. ``--quick`` takes one partition and five steps.

    python benchmarks/variants.py [--quick] [--jobs 1]
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from entangled_kernels.datasets import (
    fetch_canadian_weather,
    fetch_concrete_slump,
    fetch_sarcos,
    fetch_uwave,
)
from entangled_kernels.experiments.agreement import CELLS, judge
from entangled_kernels.experiments.methods import LAMBDAS, shuffled_folds
from entangled_kernels.experiments.protocol import (
    Rows,
    Setup,
    nmse,
    partitions,
    run_parallel,
)
from entangled_kernels.learning import (
    FitSettings,
    LearnedKernel,
    Moments,
    Problem,
    Progress,
    reduce_moments,
)
from entangled_kernels.learning.alignment import Alignment, Line
from entangled_kernels.learning.problem import compress_rows
from entangled_kernels.learning.ridge import KernelRidgeFactor
from entangled_kernels.learning.solvers import SolverResult, ascend, solve, starting_point
from entangled_kernels.linalg import Array

from measure import print_table, write_json

# Data, training rows and partitions; those of uWave take a minute each.
TABLES: dict[str, tuple[Any, int, int]] = {
    "SARCOS, n = 50": (fetch_sarcos, 50, 20),
    "weather, n = 10": (fetch_canadian_weather, 10, 30),
    "concrete, n = 12": (fetch_concrete_slump, 12, 50),
    "uWave class 1, n = 20": (partial(fetch_uwave, classes=(1,)), 20, 6),
}
# Their experiment and setting in the paper.
PUBLISHED: dict[str, tuple[str, dict[str, Any]]] = {
    "SARCOS, n = 50": ("sarcos", {"n": 50}),
    "weather, n = 10": ("weather", {"n": 10}),
    "concrete, n = 12": ("concrete", {"n": 12}),
    "uWave class 1, n = 20": ("uwave", {"task": "class 1", "rank": "100%", "n": 20}),
}
RULES = ("cross-validated", "lambda 1", "chosen on the test rows")
STEPS = (0, 1, 5, 20)

# By rule: the value that the rule minimises, and the error on the test rows.
Scores = dict[str, tuple[float, float]]


@dataclass(frozen=True)
class Variant:
    """How the kernel is learned; the defaults are the algorithm as published.

    Attributes
    ----------
    init : {"random", "identity"}
    steps : tuple of int
        Numbers of steps after which the kernel is evaluated.
    mix : float
        The paper's gamma.
    target_norms : bool
        Whether both terms are divided by the norms of their targets.
    centring : bool
        Whether Gram matrices are centred in the objective.
    unit_columns : bool
        Whether inputs and targets are divided by their deviations first.
    our_units : bool
        Whether kernels are scaled to the trace of the plain one, so that lambda means what it does
        there.
    library : bool
        Whether steps are those of the common manifold library (`ascend_as_library`).
    """

    init: str = "random"
    steps: tuple[int, ...] = (200,)
    mix: float = 0.5
    target_norms: bool = True
    centring: bool = True
    unit_columns: bool = False
    our_units: bool = False
    library: bool = False


ALL = {
    "the letter: random start, {} steps": Variant(steps=(*STEPS, 200)),
    "plain start, {} steps": Variant(init="identity", steps=(*STEPS[1:], 200)),
    "without target norms, {} steps": Variant(target_norms=False),
    "without centring, {} steps": Variant(centring=False),
    "without norms and centring, {} steps": Variant(target_norms=False, centring=False),
    "unit-variance columns, {} steps": Variant(unit_columns=True),
    "gamma 0, {} steps": Variant(mix=0.0),
    "gamma 1, {} steps": Variant(mix=1.0),
    "lambda in our units, {} steps": Variant(our_units=True),
    "steps of the library, {}": Variant(library=True, steps=(20, 200)),
    "steps of the library without norms and centring, {}": Variant(
        library=True, target_norms=False, centring=False
    ),
}


GAMMAS = ("gamma 0, {} steps", "the letter: random start, {} steps", "gamma 1, {} steps")
CHOSEN_GAMMA = "gamma chosen from 0, 0.5 and 1, {} steps"


class Case(NamedTuple):
    """One partition of one table."""

    task: str
    split: int
    rows: Rows
    seed: int
    quick: bool

    def __str__(self) -> str:
        return f"{self.task}, split={self.split}"


def variant_problem(variant: Variant, Phi: Array, Y: Array) -> Problem:
    """The learning problem of uncentred rows, with the objective of a variant.

    Without target norms the terms are in units of ||V||_F and tr V, which is another weight of the
    two (`mix_of`): the scale of the whole does not matter to an ascent with a line search.
    """
    rows = compress_rows(Phi, Y, centred=False)
    moments = Moments.from_arrays(rows.Phi, rows.Y)
    problem = reduce_moments(moments, centred=False, rows=rows)
    if not variant.centring:
        raw = moments.second_moments(centred=False)
        energy = float(np.trace(raw.V))
        whole = Alignment(
            C=raw.C,
            B=raw.B / np.sqrt(energy),
            q=raw.B / np.sqrt(energy),
            g=None,
            ones=np.ones(problem.n_outputs) if rows.outputs is None else rows.outputs.sum(axis=0),
            norms=(float(np.linalg.norm(raw.V)) / energy, 1.0),
            n_outputs=problem.n_outputs,
        )
        # Bases in the coordinates of the compressed rows, as the moments are.
        features, outputs = problem.features, problem.outputs
        features = features if rows.features is None else rows.features.T @ features
        outputs = outputs if rows.outputs is None else rows.outputs.T @ outputs
        whitener = features / np.sqrt(problem.scale)
        problem = replace(problem, whitened=whole.transformed(whitener, outputs, whitened=True))
    return problem


def mix_of(variant: Variant, problem: Problem) -> float:
    """The weight of the full term that a variant comes to."""
    if variant.target_norms:
        return variant.mix
    traced, full = (1.0 - variant.mix, variant.mix) * np.array(problem.whitened.norms)
    return float(full / (traced + full))


def learned_kernels(variant: Variant, problem: Problem, seed: int) -> dict[int, LearnedKernel]:
    """The kernel after each number of steps, scaled as the variant says."""
    kept: dict[int, LearnedKernel] = {}

    def keep(progress: Progress) -> None:
        if progress.n_iter in variant.steps:
            kept[progress.n_iter] = LearnedKernel.from_operators(progress.Q)

    settings = FitSettings(
        "ascent",
        alignment_mix=mix_of(variant, problem),
        init=variant.init,
        max_iter=max(variant.steps),
        seed=seed,
    )
    Q = starting_point(problem, settings)
    settings = settings._replace(init=Q)
    last = (ascend_as_library if variant.library else solve)(problem, settings, keep).kernel
    kept[0] = LearnedKernel.from_operators(Q)
    kernels = {step: kept.get(step, last) for step in variant.steps}
    return {
        step: problem.shrink_and_scale(one, 0.0) if variant.our_units else one
        for step, one in kernels.items()
    }


CONTRACTION, OPTIMISM, SUFFICIENT = 0.5, 2.0, 1e-4
MAX_TRIALS = 25
SHORTEST = 1e-10


def ascend_as_library(problem: Problem, settings: FitSettings, callback) -> SolverResult:
    """Maximise the alignment over Q of unit norm by steepest ascent with Armijo's rule.

    Notes
    -----
    The first trial step has unit length. A later one is twice the step at which a parabola through
    the last two values has its top, 2 * 2 * (f - f_before) / |gradient|^2, where our
    ascent doubles the last step. A trial is halved until it brings 1e-4 of what the gradient promises, 25
    times at most; a step that does not rise after these, or shorter than 1e-10, ends the ascent.
    """
    return ascend(problem, settings, _find_step, callback)


def _find_step(line: Line, history: list[float], gradient: Array, last: float) -> float:
    slope, value = float(np.vdot(gradient, gradient)), history[-1]
    step = (
        1.0 / np.sqrt(slope)
        if len(history) == 1
        else 2.0 * OPTIMISM * (value - history[-2]) / slope
    )
    for _ in range(MAX_TRIALS):
        if line(step) >= value + SUFFICIENT * step * slope:
            break
        step *= CONTRACTION
    stalled = line(step) < value or step * np.sqrt(slope) < SHORTEST
    return 0.0 if stalled else float(step)


def _coefficients(variant: Variant, problem: Problem, kernel: LearnedKernel, method: str) -> Array:
    """Coefficients (number of lambdas, p, m) of EKL or ptrEKL."""
    if method == "ptrEKL":
        kernel = kernel.partial_trace(problem.n_outputs)
        kernel = kernel if variant.our_units else kernel.mixed(0.0, problem.n_outputs)
    path = KernelRidgeFactor(problem, kernel).coefficients(LAMBDAS)
    return np.array([(problem.outputs @ coef.T @ problem.features.T) for coef in path])


def _errors(Y: Array, Phi: Array, path: Array, weights: Array) -> Array:
    """Weighted mean squared error of every lambda."""
    return np.array([float(np.mean((Y - Phi @ coef.T) ** 2, axis=0) @ weights) for coef in path])


def _measure(case: Case) -> list[dict[str, Any]]:
    """Records of all variants on one partition."""
    scores_of: dict[tuple[str, int, str], Scores] = {}
    last = 5 if case.quick else 200
    with threadpool_limits(limits=1, user_api="blas"):
        for name, variant in ALL.items():
            steps = tuple(sorted({min(step, last) for step in variant.steps}))
            of_variant = _measure_variant(replace(variant, steps=steps), case)
            scores_of |= {(name, *key): scores for key, scores in of_variant.items()}
    for method in ("EKL", "ptrEKL"):
        # The first of equal scores.
        scores_of[CHOSEN_GAMMA, last, method] = {
            rule: min(
                (scores_of[name, last, method][rule] for name in GAMMAS), key=lambda score: score[0]
            )
            for rule in RULES
        }
    common = {"n": len(case.rows.Y), "split": case.split}
    return [
        {"method": f"{method}, {rule}", "task": case.task, "variant": name.format(step)}
        | common
        | {"nmse": error}
        for (name, step, method), scores in scores_of.items()
        for rule, (_, error) in scores.items()
    ]


def _measure_variant(variant: Variant, case: Case) -> dict[tuple[int, str], Scores]:
    """`Scores` by number of steps and method."""
    X, Y, X_test, Y_test = case.rows
    if variant.unit_columns:
        inputs, targets = (np.where(one.std(axis=0) > 0.0, one.std(axis=0), 1.0) for one in (X, Y))
        X, X_test, Y, Y_test = X / inputs, X_test / inputs, Y / targets, Y_test / targets
    variance = np.var(Y, axis=0)
    weights = (
        np.where(variance > 0.0, 1.0 / np.where(variance > 0.0, variance, 1.0), 0.0) / Y.shape[1]
    )
    held_out: dict[tuple[int, str], Array] = {}
    for train, test in shuffled_folds(len(Y), case.seed):
        problem = variant_problem(variant, X[train], Y[train])
        for step, kernel in learned_kernels(variant, problem, case.seed).items():
            for method in ("EKL", "ptrEKL"):
                path = _coefficients(variant, problem, kernel, method)
                errors = _errors(Y[test], X[test], path, weights)
                held_out[step, method] = held_out.get((step, method), 0.0) + errors
    problem = variant_problem(variant, X, Y)
    kernels = learned_kernels(variant, problem, case.seed)
    scores = {}
    for (step, method), errors in held_out.items():
        path = _coefficients(variant, problem, kernels[step], method)
        ours = [nmse(Y_test, X_test @ coef.T) for coef in path]
        best, one = int(errors.argmin()), int(np.flatnonzero(LAMBDAS == 1.0)[0])
        pairs = (
            (float(errors[best]), ours[best]),
            (float(errors[one]), ours[one]),
            (min(ours), min(ours)),
        )
        scores[step, method] = dict(zip(RULES, pairs, strict=True))
    return scores


def run(setup):
    """Records of all variants on partitions of four settings of the paper."""
    cases = []
    for task, (fetch, n, n_splits) in TABLES.items():
        X, Y = fetch(data_home=setup.data_home, return_X_y=True)
        for split in partitions(len(X), n, 1 if setup.quick else n_splits, setup.seed):
            rows = Rows(X[split.train], Y[split.train], X[split.test], Y[split.test])
            cases.append(Case(task, split.number, rows, split.seed, setup.quick))
    return [record for records in run_parallel(_measure, cases, setup) for record in records]


def table(records, task):
    """Errors of every variant, and in brackets paper less ours in standard errors of the difference."""
    experiment, keys = PUBLISHED[task]
    cells = {name: cell for cell in CELLS[experiment] if cell.keys == keys for name in cell.ours}
    errors = {}
    for record in records:
        if record["task"] == task:
            errors.setdefault((record["variant"], record["method"]), []).append(record["nmse"])
    rows = {}
    for (variant, method), values in errors.items():
        cell = cells[method.partition(",")[0]]
        rng = np.random.default_rng(0)
        verdict = judge(values, cell.nmse, cell.partitions, rng, deviation=cell.deviation)
        text = f"{verdict.ours:.{cell.digits}f} ({verdict.in_errors:+.1f})"
        rows.setdefault(variant, {"variant": variant})[method] = text
    known = {cell.method: f"{cell.nmse:.{cell.digits}f}" for cell in cells.values()}
    paper = ", ".join(f"{name} {value}" for name, value in known.items())
    print_table(f"{task}: nMSE; the paper has {paper}", list(rows.values()))
    return list(rows.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    records = run(Setup("paper", quick=arguments.quick, n_jobs=arguments.jobs))
    write_json("variants", {task: table(records, task) for task in TABLES} | {"records": records})


if __name__ == "__main__":
    main()
