import pytest

from entangled_kernels.files import KINDS, file_kind


@pytest.mark.parametrize("ending", KINDS)
def test_kinds_by_the_end_of_the_name(ending):
    assert file_kind(f"a.b{ending.upper()}") == KINDS[ending]
    packed = file_kind(f"a{ending}.gz")
    assert packed == (KINDS[ending] if KINDS[ending] in ("csv", "tsv") else None)
    assert file_kind(f"a{ending}.gz", compressed=False) is None


def test_other_names_are_no_tables():
    assert file_kind("a.xlsx") is None
    assert file_kind("csv") is None
