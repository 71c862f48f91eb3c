import os

import pytest

from entangled_kernels.storage.atomic import atomic_write


def test_writes_into_a_folder_that_is_made(tmp_path):
    path = tmp_path / "new" / "file.txt"
    with atomic_write(path) as file:
        file.write("a\nb")
    assert path.read_bytes() == b"a\nb"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_failure_leaves_what_was_there(tmp_path, error):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(error), atomic_write(path, "wb") as file:  # noqa: PT012
        file.write(b"half")
        raise error
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_keeps_the_mode_and_follows_links(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    with atomic_write(link) as file:
        file.write("new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == 0o640


def test_new_files_have_the_mode_of_ordinary_ones(tmp_path):
    with atomic_write(tmp_path / "ours") as file:
        file.write("")
    (tmp_path / "plain").write_text("")
    assert os.stat(tmp_path / "ours").st_mode == os.stat(tmp_path / "plain").st_mode
