import platform
from importlib.metadata import version

from entangled_kernels.storage import software_versions


def test_versions_of_what_is_installed():
    versions = software_versions("skops", "a-package-that-is-not-there")
    assert versions["python"] == platform.python_version()
    assert versions["numpy"] == version("numpy")
    assert versions["skops"] == version("skops")
    assert "a-package-that-is-not-there" not in versions
