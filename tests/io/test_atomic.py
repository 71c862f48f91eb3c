import os
import subprocess
import sys

import pytest

from entangled_kernels import files
from entangled_kernels.files import atomic_write, remove_abandoned


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


def test_a_link_that_leads_nowhere_makes_no_folders(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    link = tmp_path / "link"
    link.symlink_to(elsewhere / "deep" / "file")
    with (
        pytest.raises(FileNotFoundError, match="in a folder that is not there"),
        atomic_write(link),
    ):
        pass
    assert not elsewhere.exists()
    (elsewhere / "deep").mkdir(parents=True)
    with atomic_write(link) as file:
        file.write("new")
    assert (elsewhere / "deep" / "file").read_text() == "new"


def partial_file(folder, name, machine, process):
    path = folder / f".{name}.{machine}-{process}.abcd.part"
    path.touch()
    return path.name


def test_only_what_was_abandoned_is_removed(tmp_path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    own, alive = partial_file(tmp_path, "state", files._machine(), dead.pid), os.getpid()
    kept = {
        partial_file(tmp_path, "state", files._machine(), alive),
        partial_file(tmp_path, "state", "0badcafe", dead.pid),
        partial_file(tmp_path, "state2", files._machine(), dead.pid),
        partial_file(tmp_path, "other", files._machine(), dead.pid),
    }
    (tmp_path / "state").touch()
    old = tmp_path / partial_file(tmp_path, "state", "0badcafe", 1)
    os.utime(old, (0, 0))
    remove_abandoned(tmp_path / "state")
    assert {path.name for path in tmp_path.iterdir()} == kept | {"state"}
    assert own not in kept


def test_a_writer_at_work_is_left_alone(tmp_path):
    """A search for abandoned files by another process does not disturb a writer."""
    path = tmp_path / "state"
    with atomic_write(path) as file:
        file.write("whole")
        remove_abandoned(path)
    assert path.read_text() == "whole"
