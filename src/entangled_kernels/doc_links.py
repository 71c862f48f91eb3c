"""Links from the HTML representation of an estimator to its page of the documentation."""

from __future__ import annotations

import os

__all__ = ["ADDRESS", "VARIABLE", "DocLinkMixin"]

# Where the site is published. There is no link while this and the variable are empty.
ADDRESS = ""
VARIABLE = "ENTANGLED_KERNELS_DOCS"


class DocLinkMixin:
    """What scikit-learn asks an estimator for when it draws its diagram in a notebook.

    The address of the site is the value of the environment variable ``ENTANGLED_KERNELS_DOCS``, or
    else `ADDRESS`.

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

    @property
    def _doc_link_template(self) -> str:
        """Address of the page, with a field for the name; empty without a site, for no link."""
        address = os.environ.get(VARIABLE, ADDRESS).rstrip("/")
        return address and address + "/api/generated/entangled_kernels.{estimator_name}.html"

    def _doc_link_url_param_generator(self) -> dict[str, str]:
        """What fills the field of the template."""
        return {"estimator_name": type(self).__name__}
