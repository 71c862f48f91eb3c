"""Links from the HTML representation of an estimator to its page of the documentation."""

from __future__ import annotations

import os
from typing import Any

__all__ = ["ADDRESS", "VARIABLE", "DocLinkMixin", "doc_link_template", "doc_link_url_parameters"]

# Where the site is published. There is no link while this and the variable are empty.
ADDRESS = ""
VARIABLE = "ENTANGLED_KERNELS_DOCS"


def _template(estimator: Any) -> str:
    """Address of the page of an estimator, with a field for its name; empty where there is no site."""
    address = os.environ.get(VARIABLE, ADDRESS).rstrip("/")
    # scikit-learn draws no link for an empty address.
    return address and address + "/api/generated/entangled_kernels.{estimator_name}.html"


doc_link_template = property(_template)


def doc_link_url_parameters(estimator: Any) -> dict[str, str]:
    """What fills the fields of `doc_link_template`."""
    return {"estimator_name": type(estimator).__name__}


class DocLinkMixin:
    """What scikit-learn asks an estimator for when it draws its diagram in a notebook.

    The address of the site is that of the environment variable ``ENTANGLED_KERNELS_DOCS``, such as
    that of a site that ``make docs`` has built, or else `ADDRESS`.

    Examples
    --------
    >>> import os
    >>> from entangled_kernels import ForestFeatures
    >>> os.environ["ENTANGLED_KERNELS_DOCS"] = "https://docs.example"
    >>> ForestFeatures()._get_doc_link()
    'https://docs.example/api/generated/entangled_kernels.ForestFeatures.html'
    >>> del os.environ["ENTANGLED_KERNELS_DOCS"]
    """

    _doc_link_module = "entangled_kernels"
    _doc_link_template = doc_link_template
    _doc_link_url_param_generator = doc_link_url_parameters
