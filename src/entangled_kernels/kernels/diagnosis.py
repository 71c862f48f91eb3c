"""Entanglement tests of a kernel, computed on its Choi matrix D and not on a Gram matrix.

The block Gram matrix is G = kron(Phi, I_p) D kron(Phi, I_p)^T. If the partial transpose of D
(m*p, m*p) is psd, so is that of every G. If Phi has rank m, both tests have the same result.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..linalg import Array, operator_schmidt, partial_transpose_eigenvalues

__all__ = ["EntanglementReport", "entanglement_report"]

TOLERANCE = 1e-10
# By rounding, a psd matrix of trace one may have negative eigenvalues of this size, or of this many
# rounding errors of its dtype.
ROUNDING, ROUNDINGS = 1e-8, 10.0


@dataclass(frozen=True)
class EntanglementReport:
    """What is proven about the entanglement of a kernel, and how far it is from separable.

    All numbers are for D divided by its trace, so that kernels can be compared.

    Attributes
    ----------
    dims : (m, p)
        Numbers of features and outputs.
    ppt : bool
        Whether the partial transpose of D is psd.
    lowest_eigenvalue : float
        Lowest eigenvalue of the partial transpose.
    negativity : float
        Sum of its absolute negative eigenvalues.
    realignment : float
        Computable cross norm; above 1 it proves entanglement.
    schmidt_entropy : float
        Entropy in nats of the squared operator-Schmidt values; 0 for a separable kernel k(x, z) T.
    separable_share : float
        Share of ||D||_F^2 that the nearest separable kernel explains; 1 for a separable kernel.
    schmidt_rank : int
        Number of operator-Schmidt values above 1e-9 times the largest.
    entangled : bool or None
        True or False where proven, None where these tests do not decide.
    verdict : str
        One sentence that says what is proven, and by what.

    Notes
    -----
    *Entangled* means: D is no sum of kron(B_l, C_l) with psd factors. The theorems speak of complex
    factors; for a real D that has a decomposition into real ones, the partial transpose leaves D
    itself unchanged.
    """

    dims: tuple[int, int]
    ppt: bool
    lowest_eigenvalue: float
    negativity: float
    realignment: float
    schmidt_entropy: float
    separable_share: float
    schmidt_rank: int

    @property
    def is_product(self) -> bool:
        """Whether the kernel is one scalar kernel times one output matrix (Schmidt rank one)."""
        return self.schmidt_rank == 1

    @property
    def entangled(self) -> bool | None:
        """True or False where proven, None where these tests do not decide."""
        return self._finding()[0]

    @property
    def verdict(self) -> str:
        """One sentence that says what is proven, and by what."""
        return self._finding()[1]

    def _finding(self) -> tuple[bool | None, str]:
        m, p = self.dims
        if self.is_product:
            return False, (
                "Separable: the kernel is one scalar kernel times one output matrix "
                "(Schmidt rank one)."
            )
        if not self.ppt:
            return True, (
                f"Entangled: PPT fails (eigenvalue {self.lowest_eigenvalue:.3g} of the partial "
                "transpose), which proves that the kernel is no sum of separable kernels."
            )
        if self.realignment > 1.0 + TOLERANCE:
            return True, (
                f"Entangled: PPT holds and leaves {m} x {p} undecided, but the realignment value "
                f"{self.realignment:.4g} above 1 proves entanglement."
            )
        if m * p <= 6:
            return (
                False,
                f"Not entangled: PPT holds, which proves separability in dimensions {m} x {p}.",
            )
        return None, (
            f"Undecided: PPT holds, which beyond 2 x 2 and 2 x 3 (here {m} x {p}) proves neither "
            "entanglement nor its absence."
        )

    def __repr__(self) -> str:
        ppt = "holds" if self.ppt else "fails"
        return (
            "EntanglementReport of a kernel with "
            f"{self.dims[0]} features and {self.dims[1]} outputs\n"
            f"  PPT               {ppt} (lowest eigenvalue {self.lowest_eigenvalue:.4g})\n"
            f"  negativity        {self.negativity:.4g}\n"
            f"  realignment       {self.realignment:.4g}\n"
            f"  Schmidt entropy   {self.schmidt_entropy:.4g} nats\n"
            f"  separable share   {self.separable_share:.1%}\n"
            f"  {self.verdict}"
        )


def _check_psd(state: Array, precision: float) -> None:
    """Raise unless a matrix of trace one is psd up to rounding."""
    try:
        np.linalg.cholesky(state + max(ROUNDING, ROUNDINGS * precision) * np.eye(len(state)))
    except np.linalg.LinAlgError:
        lowest = float(np.linalg.eigvalsh(state)[0])
        raise ValueError(
            f"D must be positive semidefinite to be a kernel, but D / trace(D) has eigenvalue "
            f"{lowest:.3g}; for an indefinite matrix these tests prove nothing."
        ) from None


def entanglement_report(
    D: Array, dims: tuple[int, int], tol: float = TOLERANCE
) -> EntanglementReport:
    """Report on a psd matrix D (m*p, m*p), row index ``feature * p + output``; dims = (m, p).

    Examples
    --------
    >>> import numpy as np
    >>> bell = np.array([1.0, 0.0, 0.0, 1.0])
    >>> report = entanglement_report(np.outer(bell, bell), (2, 2))
    >>> report.entangled
    True
    >>> print(report.verdict)
    Entangled: PPT fails (eigenvalue -0.5 of the partial transpose), which proves that the kernel is
    no sum of separable kernels.
    """
    D = np.asarray(D)
    if D.ndim != 2 or D.shape[0] != D.shape[1] or D.dtype.kind not in "biufc":
        raise ValueError(
            f"D must be a square matrix of numbers, got shape {D.shape} and dtype {D.dtype}"
        )
    if np.shape(dims) != (2,):
        raise ValueError(
            f"dims must be the two numbers (m, p) of features and outputs, got {dims!r}"
        )
    trace = float(np.trace(D).real)
    if not trace > 0:
        raise ValueError(f"D must have a positive trace to be a kernel, got {trace:.3g}.")
    precision = float(np.finfo(D.dtype).eps) if D.dtype.kind in "fc" else 0.0
    state = np.asarray(D, dtype=np.result_type(D, np.float64)) / trace
    _check_psd(state, precision)
    eigenvalues = partial_transpose_eigenvalues(state, dims)
    values = operator_schmidt(state, dims).values
    shares = values**2 / np.sum(values**2)
    kept = shares[shares > 0]
    return EntanglementReport(
        dims=(int(dims[0]), int(dims[1])),
        ppt=bool(eigenvalues[0] >= -tol * np.abs(eigenvalues).max()),
        lowest_eigenvalue=float(eigenvalues[0]),
        negativity=float(-np.minimum(eigenvalues, 0.0).sum()),
        realignment=float(values.sum()),
        schmidt_entropy=float(max(0.0, -(kept * np.log(kept)).sum())),
        separable_share=float(shares[0]),
        schmidt_rank=int((values > 1e-9 * values[0]).sum()),
    )
