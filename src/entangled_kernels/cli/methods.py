"""Learners by name, with their settings and groups of columns as they are typed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .errors import CommandError, check_choice
from .input_groups import OPTION, name_pair, read_groups
from .shell_command import split_names

__all__ = ["METHODS", "Choice", "choose_method"]

METHODS = {
    "entangled": "entangled kernel ridge",
    "output-kernel": "output kernel learning: one relation between targets, learned with the model",
    "multiple-kernels": "several kernels, or a kernel for every --input-group, with learned weights",
    "multi-view": "every --input-group is a view, which rows may lack",
    "fourier": "random Fourier features of an operator-valued kernel",
    "var": "the targets are time series, predicted from their own past; see forecast",
}
GROUPED = ("multiple-kernels", "multi-view")


def _flag(text: str) -> bool:
    return {"true": True, "yes": True, "false": False, "no": False}[text.lower()]


def _one_of(*names: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        return {name: name for name in names}[text]

    return read


def _some_of(*names: str) -> Callable[[str], list[str]]:
    def read(text: str) -> list[str]:
        return [{name: name for name in names}[part] for part in text.split("+")]

    return read


PENALTIES = ("frobenius", "schatten", "trace", "elastic", "cluster", "entrywise")
FIELDS = ("decomposable", "curl_free", "divergence_free", "transformable")
# Settings of each method: how a value is read, and what it may be in words.
SETTINGS: dict[str, dict[str, tuple[Callable[[str], Any], str]]] = {
    "entangled": {},
    "output-kernel": {
        "penalty": (_some_of(*PENALTIES), f"one of {', '.join(PENALTIES)}, or several with +"),
        "constraint": (_flag, "true or false"),
        "exponent": (float, "a number"),
        "l1_ratio": (float, "a number"),
        "rank": (int, "a whole number"),
    },
    "multiple-kernels": {
        "output_kernel": (
            _one_of("identity", "diagonal", "shared", "own"),
            "one of identity, diagonal, shared, own",
        ),
        "norm": (float, "a number"),
    },
    "multi-view": {"eta": (float, "a number"), "sparse": (_flag, "true or false")},
    "fourier": {
        "kernel": (_one_of(*FIELDS), f"one of {', '.join(FIELDS)}"),
        "n_frequencies": (int, "a whole number"),
        "gamma": (float, "a number"),
    },
    "var": {
        "kernel": (_one_of("hadamard", "additive"), "hadamard or additive"),
        "lags": (int, "a whole number"),
        "norm": (float, "a number"),
    },
}


@dataclass(frozen=True)
class Choice:
    """A method with what was said of it.

    Attributes
    ----------
    name : str
        A key of `METHODS`.
    settings : dict
        By the names of its estimator.
    groups : dict of list of str
        Columns, or patterns of them, by the name of the group.
    """

    name: str
    settings: dict[str, Any]
    groups: dict[str, list[str]]


def choose_method(name: str, settings: Sequence[str] | None, groups: Sequence[str] | None) -> Choice:
    """The method of this name, or an error that says what there is.

    Parameters
    ----------
    name : str
    settings : sequence of str, optional
        ``NAME=VALUE``, several separated by commas.
    groups : sequence of str, optional
        ``NAME=A,B`` with names of columns.

    Examples
    --------
    >>> choose_method("output-kernel", ["penalty=trace+elastic,constraint=true"], None).settings
    {'penalty': ['trace', 'elastic'], 'constraint': True}
    """
    check_choice("--method", name, METHODS)
    known, found = SETTINGS[name], dict[str, Any]()
    for setting, value in (name_pair("--set", part) for part in split_names(settings or [])):
        if setting not in known:
            has = f"has {', '.join(known)}" if known else "has no settings"
            raise CommandError(f"--set: --method {name} {has}, got {setting!r}")
        read, need = known[setting]
        try:
            found[setting] = read(value)
        except (KeyError, ValueError):
            raise CommandError(f"--set {setting} must be {need}, got {value!r}") from None
    if groups and name not in GROUPED:
        raise CommandError(f"{OPTION} needs --method {' or '.join(GROUPED)}, got {name}")
    named = read_groups(groups)
    if name == "multi-view" and not named:
        raise CommandError(f"--method multi-view needs views, such as {OPTION} weather=temperature,wind")
    return Choice(name, found, named)
