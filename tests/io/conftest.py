import pytest


@pytest.fixture
def file(tmp_path):
    """Write text or bytes to a file of that name."""

    def write(content, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write
