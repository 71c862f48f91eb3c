"""The paper's pictures of ideas, drawn from kernels that are computed and checked."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..io import ExperimentResults, Record
from ..kernels import (
    EntangledKernel,
    FeatureKernel,
    OperatorValuedKernel,
    PartialTraceKernel,
    SeparableKernel,
    TransformableKernel,
    entanglement_report,
)
from ..linalg import Array
from .setup import Experiment, Figures, PageTable, Setup

__all__ = ["KERNELS", "Witness", "examine", "witnesses"]

# Rows of the separable kernel that is drawn, and outputs of all kernels.
N_SAMPLES, N_OUTPUTS = 6, 2


class Witness(NamedTuple):
    """A kernel that lies in a class and in no smaller one, what shows it, and points to ask it at."""

    kernel: OperatorValuedKernel
    proof: str
    X: Array


def _indefinite(Phi: Array, Psi: Array) -> Array:
    """P = kron(J, phi(x) phi(z)^T) with J exchanging two outputs: its partial trace is k(x, z) J."""
    pairs = np.einsum("ia,jb->ijab", Phi, Psi)  # (n, t, m, m)
    return np.asarray(np.kron(np.array([[0.0, 1.0], [1.0, 0.0]]), pairs))


def witnesses() -> dict[str, Witness]:
    """One kernel for each class, with two outputs on two features.

    At the two unit vectors a linear kernel's block Gram matrix is its D, of which in 2 x 2 dimensions the
    partial transpose decides.
    """
    unit = np.eye(2)
    T = np.array([[1.0, 0.6], [0.6, 1.0]])
    first = SeparableKernel(FeatureKernel(None, np.diag([1.0, 0.2])), T)
    second = SeparableKernel(FeatureKernel(None, np.diag([0.2, 1.0])), np.diag([1.0, 0.3]))
    # Exchanges outputs and features in part, which no product of one matrix for each does.
    entangler = np.eye(4) + 0.5 * np.eye(4)[[0, 2, 1, 3]]
    return {
        "separable": Witness(first, "operator-Schmidt rank one", unit),
        "sum of separable": Witness(first + second, "Schmidt rank above one, partial transpose psd", unit),
        "transformable": Witness(
            TransformableKernel("linear", [lambda X: X, lambda X: X**2]),
            "entries k(S_l x, S_m z), partial transpose not psd",
            np.array([[0.5], [1.5]]),
        ),
        "entangled": Witness(
            EntangledKernel(entangler, np.diag([1.0, 0.4])), "psd, partial transpose not psd", unit
        ),
        "partial trace": Witness(
            PartialTraceKernel(_indefinite, N_OUTPUTS), "not psd, so in none of the others", unit
        ),
    }


def examine(witness: Witness) -> Record:
    """What the library's tests say of a witness: psd, Schmidt rank, partial transpose, verdict."""
    gram = witness.kernel(witness.X).to_dense()
    lowest = float(np.linalg.eigvalsh(gram)[0])
    found: Record = {"lowest eigenvalue": lowest, "psd": lowest > -1e-10}
    if not found["psd"]:
        verdict = "Indefinite: a kernel of a Krein space, of which entanglement is not asked."
        return found | {"schmidt_rank": None, "transpose": None, "entangled": None, "verdict": verdict}
    report = entanglement_report(gram, (len(witness.X), N_OUTPUTS))
    return found | {
        "schmidt_rank": report.schmidt_rank,
        "transpose": report.lowest_eigenvalue,
        "entangled": report.entangled,
        "verdict": report.verdict,
    }


def run(setup: Setup) -> ExperimentResults:
    """Witnesses of all classes, and the Gram matrices of the pictures; no protocol has a part in it."""
    rng = np.random.default_rng(setup.seed)
    X = np.sort(rng.standard_normal((N_SAMPLES, 1)), axis=0)
    T = np.array([[1.0, 0.7, -0.3], [0.7, 1.0, 0.1], [-0.3, 0.1, 0.6]])
    separable = SeparableKernel("rbf", T, gamma=0.5)
    transformable = TransformableKernel("rbf", [lambda X: X, lambda X: X + 0.8, lambda X: -X], gamma=0.5)
    plain = SeparableKernel("rbf", np.eye(1), gamma=0.5)
    arrays: dict[str, Array] = {
        "scalar": plain(X).to_dense(),
        "output": T,
        "separable": separable(X).to_dense(),
        "nonseparable": transformable(X).to_dense(),
    }
    cases = witnesses()
    records = []
    for done, (name, witness) in enumerate(cases.items()):
        setup.tell(done, len(cases), name)
        records.append({"method": name, "n": len(witness.X), "split": 0, **examine(witness)})
    setup.tell(len(cases), len(cases), "done")
    meta = setup.meta(methods={name: witness.proof for name, witness in cases.items()})
    return ExperimentResults(KERNELS.name, KERNELS.title, records, meta=meta, arrays=arrays)


def tables(results: ExperimentResults) -> list[PageTable]:
    """What was computed of every witness."""
    names = ["lowest eigenvalue", "schmidt_rank", "transpose", "verdict"]
    rows = [[record["method"], *(record[name] for name in names)] for record in results.records]
    columns = ["class", "lowest eigenvalue", "Schmidt rank", "lowest of the partial transpose", "verdict"]
    return [PageTable(columns, rows, "One kernel in each class, and what the library's tests find")]


def figures(results: ExperimentResults) -> Figures:
    """K, T and G of a separable kernel; separable and other blocks side by side; the classes."""
    from .paper_figures import draw_kernel_classes, draw_matrices

    p = len(results.array("output"))
    separable, other = results.array("separable"), results.array("nonseparable")
    words = {record["method"]: _words(record) for record in results.records}
    return {
        "kernels-separable": draw_matrices(
            {"K": results.array("scalar"), "T": results.array("output"), "G = K kron T": separable},
            {"G = K kron T": p},
            "A separable kernel: every block is a multiple of T",
        ),
        "kernels-blocks": draw_matrices(
            {"separable": separable, "not separable": other},
            {"separable": p, "not separable": p},
            "Blocks of one pattern, and blocks that change with the inputs",
        ),
        "kernels-classes": draw_kernel_classes(words),
    }


def _words(record: Record) -> str:
    if not record["psd"]:
        return f"lowest eigenvalue {record['lowest eigenvalue']:.2f}: indefinite"
    ppt = "psd" if record["transpose"] > -1e-10 else f"{record['transpose']:.2f}"
    return f"Schmidt rank {record['schmidt_rank']}\npartial transpose {ppt}"


KERNELS = Experiment(
    name="kernels",
    title="Classes of kernels, and one in each",
    about=(
        "A separable kernel is one matrix K of inputs and one matrix T of outputs. Others have blocks that "
        "change with the inputs. Separable kernels are sums of separable ones, and these are partial traces, "
        "as transformable and entangled kernels are. A kernel was computed in each class that is in none "
        "of the smaller ones, and the library's tests say why."
    ),
    run=run,
    figures=figures,
    tables=tables,
    one_protocol=True,
)
