import os
from pathlib import Path

import pytest

from entangled_kernels.cli.errors import CommandError
from entangled_kernels.cli.files import check_apart, check_folder, check_output, files_of


def test_files_to_write(folder):
    with pytest.raises(CommandError, match=r"there is no folder .*new.deep for m; make it first"):
        check_output(folder / "new" / "deep" / "m", force=False)
    with pytest.raises(CommandError, match=r"there is no folder .*new for results; make it first"):
        check_folder(folder / "new" / "results", force=False)
    check_folder(folder / "results", force=False)
    assert list(folder.iterdir()) == []
    (folder / "m").write_text("a")
    check_output(folder / "m", force=True)
    with pytest.raises(CommandError, match="exists already"):
        check_output(folder / "m", force=False)
    with pytest.raises(CommandError, match="is a folder, name a file"):
        check_output(folder, force=True)
    with pytest.raises(CommandError, match="m is a file, a folder was expected"):
        check_output(folder / "m" / "n", force=False)


def test_what_is_read_is_never_replaced(folder):
    (folder / "rows").mkdir()
    for name in ("rows/a.csv", "rows/b.csv", "t.csv"):
        (folder / name).write_text("a\n1\n")
    os.link("t.csv", "u.csv")
    os.symlink("t.csv", "v.csv")
    assert files_of(Path("t.csv")) == [Path("t.csv")]
    both = [Path("rows/a.csv"), Path("rows/b.csv")]
    assert files_of(Path("rows")) == files_of(Path("rows/*.csv")) == both
    assert files_of(Path("-")) == files_of(Path("nothing.csv")) == []
    for name in ("t.csv", "./rows/../t.csv", "u.csv", "v.csv"):
        with pytest.raises(CommandError, match="is read by this command, and would be lost"):
            check_output(Path(name), force=True, inputs=[Path("rows/a.csv"), Path("t.csv")])
    with pytest.raises(CommandError, match="is read by this command"):
        check_apart(Path("rows/b.csv"), files_of(Path("rows")))
    check_output(Path("rows/c.csv"), force=False, inputs=files_of(Path("rows")))


@pytest.mark.parametrize("target", ["elsewhere/m", "gone", "/nowhere/at/all"])
@pytest.mark.parametrize("check", [check_output, check_folder])
def test_links_that_lead_nowhere(folder, target, check):
    os.mkdir("elsewhere")
    os.symlink(target, "link")
    for place in ("link", "link/m", "link/deep/m"):
        with pytest.raises(CommandError, match=f"link is a link to {target}, which is not there"):
            check(folder / place, force=True)
    assert sorted(os.listdir()) == ["elsewhere", "link"]
    assert os.listdir("elsewhere") == []


@pytest.mark.parametrize(
    "arguments",
    [
        "fit plant.csv -t pressure -i 'net load' -f linear -o link",
        "fit plant.csv -t pressure -i 'net load' -f linear -o m --checkpoint link",
        "predict plant.model plant.csv --out link.csv",
        "inspect plant.model --report link",
        "compare plant.csv -t pressure -i 'net load' --report link",
        "reproduce digits --out link",
        "demo --out link",
    ],
)
def test_no_command_writes_through_a_dangling_link(plant, run, folder, tmp_path_factory, arguments):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    for name in ("link", "link.csv"):
        (folder / name).symlink_to(elsewhere / "deep" / "file")
    (folder / "plant.model").write_text("never read")
    for force in ("", "--force"):
        assert "is a link to" in run(f"{arguments} {force}", code=2).stderr
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        "fit plant.csv -t pressure -o plant.csv",
        "fit *.csv -t pressure -o plant.csv",
        "fit plant.csv -t pressure -o m --checkpoint plant.csv",
        "predict plant.model plant.csv --out plant.csv",
        "predict plant.csv t.csv --out plant.csv",
        "plan plant.model plant.csv --out plant.csv",
        "inspect plant.csv --report plant.csv",
        "compare plant.csv -t pressure --report plant.csv",
    ],
)
def test_no_command_replaces_what_it_reads(plant, run, folder, arguments):
    before = (folder / "plant.csv").read_bytes()
    for name in ("comparison.csv", "t.csv", "plant.model"):
        (folder / name).write_bytes(before)
    error = run(f"{arguments} --force", code=2).stderr
    assert "is read by this command, and would be lost" in error
    assert (folder / "plant.csv").read_bytes() == (folder / "comparison.csv").read_bytes() == before
