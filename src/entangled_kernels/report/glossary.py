"""Words that a page uses and that not every reader knows, in plain words."""

from __future__ import annotations

import re

__all__ = ["TERMS", "used_terms"]

# What to look for, and what it means; in the order of a glossary.
TERMS: dict[str, str] = {
    "alignment": "How well a kernel agrees with the targets: a kernel that calls rows alike where their "
    "targets are alike has a large alignment. The learned kernel is the one that has the largest, shrunk.",
    "alignment mix": "How much of what is aligned is the whole kernel, rather than its part that all "
    "targets share.",
    "alpha": "The ridge penalty: the larger it is, the more predictions are drawn to the mean.",
    "cross-validated": "Found on rows that were left out when the model was fitted, each part of the rows "
    "in its turn.",
    "EKL": "Entangled kernel learning: kernel ridge with a kernel that learns how targets are related.",
    "entangled": "Of a kernel that cannot be split into a part for the inputs and a part for the targets, "
    "nor into a sum of such: which targets help each other depends on the inputs.",
    "extra-trees": "The average of many trees whose splits are drawn at random.",
    "feature map": "What turns inputs into the features that the model is linear in.",
    "held-out": "Of rows that had no part in the model that predicts them.",
    "importance": "By how much predictions change as an input changes by its standard deviation, in "
    "standard deviations of the targets, over all targets.",
    "interval": "Two numbers between which a new measurement lies with the probability given.",
    "kernel": "A measure of which rows are alike, and here also of which targets go together.",
    "kernel ridge": "Ridge regression with a kernel, each target on its own.",
    "Kraus": "Kraus operators are the matrices that a learned kernel is a sum of; their number is its rank.",
    "KRR": "Kernel ridge regression, each target on its own.",
    "lowest eigenvalue": "Of the partial transpose: below zero the kernel is entangled.",
    "negativity": "Sum of the negative eigenvalues of the partial transpose; above zero the kernel is "
    "entangled.",
    "nI": "Normalised improvement over kernel ridge: its error less the method's, over their geometric "
    "mean; above zero is better than kernel ridge.",
    "nMSE": "Mean squared error over the variance of the target: 0 is perfect, 1 is predicting the mean.",
    "noise": "What would be found if targets were nothing but the errors of held-out rows.",
    "OKL": "Output kernel learning: one relation between the targets, the same for all inputs.",
    "operator-Schmidt": "Values that tell of how many products a kernel is a sum; of one it is separable.",
    "out of fold": "Predicted by a model that was fitted without the row.",
    "partial trace": "What is left of a kernel when the targets are averaged out: a measure of which rows "
    "are alike.",
    "partial transpose": "The kernel's matrix with its blocks of targets transposed; a negative eigenvalue "
    "of it proves that the kernel is entangled.",
    "PLS": "Partial least squares: a few combinations of inputs that go with the targets.",
    "PPT": "Positive partial transpose: holds for every kernel that is not entangled; where it fails, the "
    "kernel is.",
    "ptrEKL": "Entangled kernel learning that predicts with the partial trace of the learned kernel.",
    "R2": "Share of the variance of a target that predictions explain: 1 is perfect, 0 is predicting the "
    "mean.",
    "realignment": "Another test: a value above 1 proves that the kernel is entangled.",
    "RMSE": "Root of the mean squared error, in the unit of the target.",
    "Schmidt": "Schmidt rank and entropy tell of how many products of an input part and a target part a "
    "kernel is a sum; of one it is separable.",
    "separable": "Of a kernel that is a part for the inputs times a part for the targets, or a sum of such.",
    "separable share": "How much of the kernel the nearest product makes up.",
    "shrinkage": "Share of the plain kernel that is mixed into the learned one; with 1 the model is kernel "
    "ridge.",
    "standard error": "How far a mean over partitions may be off by chance.",
    "target alpha": "How smooth the fit is that the kernel is learned from.",
    "uncertainty": "Variance of a target that is left when the inputs are known.",
}


def used_terms(text: str) -> list[str]:
    """Terms that stand in a text as words of their own, in the order of the glossary.

    Examples
    --------
    >>> used_terms("The nMSE of kernel ridge.")
    ['kernel', 'kernel ridge', 'nMSE']
    """
    return [term for term in TERMS if _pattern(term).search(text)]


def _pattern(term: str) -> re.Pattern[str]:
    """Capitals count in names such as nI; other words may begin a sentence, and may have a plural."""
    words = re.escape(term).replace(r"\ ", r"\s+")
    named = any(letter.isupper() for letter in term)
    return re.compile(rf"(?<![\w-]){words}{'' if named else 's?'}(?![\w-])", 0 if named else re.IGNORECASE)
