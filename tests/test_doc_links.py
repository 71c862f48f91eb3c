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
    if isinstance(found := getattr(entangled_kernels, name), type)
    and issubclass(found, BaseEstimator)
)


def unfitted(name):
    return getattr(entangled_kernels, name)()


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_diagram_leads_to_the_page_of_the_estimator(name, monkeypatch):
    monkeypatch.setenv(VARIABLE, "https://docs.example/stable/")
    address = f"https://docs.example/stable/api/generated/entangled_kernels.{name}.html"
    assert unfitted(name)._get_doc_link() == address
    assert address in estimator_html_repr(unfitted(name))
    # The page is made because the name is listed in the reference.
    listed = "".join(path.read_text(encoding="utf-8") for path in API.glob("*.rst"))
    assert re.search(rf"^   {name}$", listed, re.MULTILINE)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_there_is_no_link_without_an_address(name, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert unfitted(name)._get_doc_link() == ""
    assert "entangled_kernels." not in "".join(
        re.findall(r'href="([^"]*)"', estimator_html_repr(unfitted(name)))
    )


def test_steps_of_others_keep_their_own_links(monkeypatch):
    monkeypatch.setenv(VARIABLE, "https://docs.example")
    html = estimator_html_repr(make_pipeline(entangled_kernels.ForestFeatures(), Ridge()))
    assert "https://docs.example/api/generated/entangled_kernels.ForestFeatures.html" in html
    assert "scikit-learn.org" in html


def test_a_class_of_somebody_else_has_no_link_to_us(monkeypatch):
    class Mine(entangled_kernels.ForestFeatures, TransformerMixin):
        pass

    monkeypatch.setenv(VARIABLE, "https://docs.example")
    assert Mine()._get_doc_link() == ""
