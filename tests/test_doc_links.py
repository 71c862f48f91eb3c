"""Links from diagrams of estimators to the documentation."""

import re
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_html_repr

import entangled_kernels
from entangled_kernels.doc_links import VARIABLE

API = Path(__file__).parents[1] / "docs" / "api"
ESTIMATORS = sorted(
    name
    for name in entangled_kernels.__all__
    if isinstance(value := getattr(entangled_kernels, name), type)
    and issubclass(value, BaseEstimator)
)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_diagram_links_to_the_page_of_the_estimator(name, monkeypatch):
    monkeypatch.setenv(VARIABLE, "https://docs.example/stable/")
    address = f"https://docs.example/stable/api/generated/entangled_kernels.{name}.html"
    model = getattr(entangled_kernels, name)()
    assert model._get_doc_link() == address
    assert address in estimator_html_repr(model)
    # Names in the reference have a page.
    listed = "".join(path.read_text(encoding="utf-8") for path in API.glob("*.rst"))
    assert re.search(rf"^   {name}$", listed, re.MULTILINE)


def test_there_is_no_link_without_an_address(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    model = entangled_kernels.EntangledKernelRidge()
    assert model._get_doc_link() == ""
    links = re.findall(r'href="([^"]*)"', estimator_html_repr(model))
    assert not any("entangled_kernels." in link for link in links)


def test_steps_of_others_keep_their_own_links(monkeypatch):
    monkeypatch.setenv(VARIABLE, "https://docs.example")
    html = estimator_html_repr(make_pipeline(entangled_kernels.ForestFeatures(), Ridge()))
    assert "https://docs.example/api/generated/entangled_kernels.ForestFeatures.html" in html
    assert "scikit-learn.org" in html


def test_a_subclass_elsewhere_has_no_link(monkeypatch):
    class Mine(entangled_kernels.ForestFeatures, TransformerMixin):
        pass

    monkeypatch.setenv(VARIABLE, "https://docs.example")
    assert Mine()._get_doc_link() == ""
