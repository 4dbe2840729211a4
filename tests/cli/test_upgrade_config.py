"""Configurations of before there was `program`: told apart by their other keys, and upgraded."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from pathlib import Path

import pytest
from running import hushcast
from test_daemons import DIRECTORY, NODE, written

from hushcast_cli.configuration.config_files import write_edited
from hushcast_cli.configuration.state import guessed
from hushcast_cli.operate.upgrade_config import with_program
from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.processes.program import programs
from hushcast_runtime.toml import read_toml

sys.path.append(str(Path(__file__).parents[2] / "tools"))
from example_files import examples  # type: ignore[import-not-found]

SINCE = {"located-owner"}
"""Programs that came with the line: no file of theirs is without."""
FIRST: dict[str, str] = {
    name: text
    for name, text in examples().items()
    if name != "network.toml" and read_toml(text)["program"] not in SINCE
}
KIND = {"broker-root.toml": "root-broker", "broker.toml": "edge-broker"}
KIND |= {"central-proxy.toml": "publications-proxy", "tomography.toml": "tomography-service"}


def before(text: str) -> str:
    """Return a configuration as the version before wrote it."""
    (line,) = [line for line in text.splitlines(keepends=True) if line.startswith("program = ")]
    return text.replace(line, "", 1)


@pytest.mark.parametrize("name", FIRST)
async def test_a_file_of_before_is_told_by_its_keys_and_gets_the_line(name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_text(before(FIRST[name]))
    file.chmod(0o640)
    program = read_toml(FIRST[name])["program"]
    checked = await hushcast("admin", "check-config", file, "--json")
    (told,) = checked.objects
    assert (checked.code, told["kind"]) == (0, KIND.get(name, name.removesuffix(".toml")))
    assert f'`hushcast admin upgrade-config` adds program = "{program}"' in checked.stderr
    done = await hushcast("admin", "upgrade-config", file, "--json")
    assert (done.code, done.stderr) == (0, "")
    assert done.objects == [{"file": str(file), "program": program, "added": ["program"]}]
    assert file.read_text() == FIRST[name], "all else is as it was"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    again = await hushcast("admin", "upgrade-config", file)
    assert (again.code, file.read_text()) == (0, FIRST[name])
    assert again.stdout.decode() == f'{file}: program = "{program}" is there already\n'
    assert (await hushcast("admin", "check-config", file)).stderr == ""


def test_every_program_has_an_example_of_before() -> None:
    assert {guessed(read_toml(before(text))) for text in FIRST.values()} == {
        one.name for one in programs() if one.name not in SINCE
    }


@pytest.mark.parametrize(
    ("text", "fresh"),
    [
        ("", 'program = "node"\n'),
        ("a = 1\n", 'program = "node"\na = 1\n'),
        ("# mine\n\na = 1\n", '# mine\n\nprogram = "node"\na = 1\n'),
        ("# of a\na = 1\n", 'program = "node"\n# of a\na = 1\n'),
        ("[log]\n", 'program = "node"\n[log]\n'),
        ("# all", 'program = "node"\n# all'),
    ],
)
def test_the_line_comes_below_the_comment_of_the_file(text: str, fresh: str) -> None:
    assert with_program(text, "node") == fresh


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (DIRECTORY.replace('"directory"', '"dirctory"'), 'there is no "dirctory": did you mean directory?'),
        ("role = ", "is not TOML"),
        ("[" * 5000, "is not TOML"),
        (examples()["network.toml"], "is no configuration of a program"),
        ("\ufeffa = 1\n", "it begins with a byte order mark"),
        ("a = 1\n" + "# all of it stays\n" * 40_000, "a configuration has at most 524288 bytes"),
    ],
)
async def test_what_cannot_be_upgraded_stays(text: str, told: str, tmp_path: Path) -> None:
    file = tmp_path / "f.toml"
    file.write_text(text)
    outcome = await hushcast("admin", "upgrade-config", file)
    assert (outcome.code, file.read_text()) == (2, text)
    assert told in outcome.error
    assert (await hushcast("admin", "upgrade-config", tmp_path / "none")).code == 2


async def test_a_program_does_not_run_by_the_file_of_another(tmp_path: Path) -> None:
    file = written(tmp_path, NODE)
    outcome = await hushcast("run", "directory", "--config", file)
    assert outcome.code == 2
    assert outcome.error == f'{file}: program: the file is of "node", and "directory" is to read it'
    file.write_text(file.read_text().replace('"node"', "7"))
    outcome = await hushcast("run", "node", "--config", file)
    assert (outcome.code, "program: write a text in quotes" in outcome.error) == (2, True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root acts as others")
def test_root_edits_nothing_that_a_link_in_somebodys_folder_leads_to() -> None:
    """Whoever owns the folder may swap the file for a link at any moment: root writes as that user."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        theirs = folder / "theirs"
        theirs.mkdir()
        target, link = folder / "target.toml", theirs / "node.toml"
        target.write_text("a = 1\n")
        link.symlink_to(target)
        os.chown(theirs, 65_534, 65_534)
        with pytest.raises(UsageError, match="cannot be written"):
            write_edited(link, "a = 2\n")
        target.chmod(0o600)
        with pytest.raises(UsageError, match="may not read it"):
            write_edited(link, "a = 2\n")
        assert target.read_text() == "a = 1\n"
        link.unlink()
        link.write_text("a = 1\n")
        os.chown(link, 65_534, 65_534)
        write_edited(link, "a = 2\n")
        assert (link.read_text(), link.stat().st_uid) == ("a = 2\n", 65_534)
