"""`backup`, `restore`, `doctor --config`, and what daemons say of a newer state: the right exit code."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from running import Running, hushcast
from stopped_state import give_state
from test_daemons import DIRECTORY, NODE, logged, written


@pytest.mark.slow
async def test_a_running_directory_is_backed_up_and_restored(tmp_path: Path) -> None:
    file, backup, state = written(tmp_path, DIRECTORY, transport="tcp"), tmp_path / "b", tmp_path / "state"
    running = await Running.start("run", "directory", "--config", file)
    await logged(running, b"running")
    (told,) = (await hushcast("admin", "backup", backup, "--config", file, "--json")).objects
    assert list(told) == ["file", "role", "version", "made", "bytes"]
    assert (told["role"], told["version"], told["bytes"]) == ("directory", 1, backup.stat().st_size)
    key = (state / "directory.key").read_bytes()
    refused = await hushcast("admin", "restore", backup, "--config", file, "--force")
    assert refused.code == 2
    assert "another daemon is running" in refused.error
    running.process.kill()
    await running.process.wait()
    refused = await hushcast("admin", "restore", backup, "--config", file)
    assert refused.code == 2
    assert "--force" in refused.error
    done = await hushcast("admin", "restore", backup, "--config", file, "--force")
    assert (done.code, done.stderr) == (0, "")
    (aside,) = state.glob("replaced-*")
    assert str(aside) in done.stdout.decode()
    assert (state / "directory.key").read_bytes() == (aside / "directory.key").read_bytes() == key
    assert b"Never start two daemons" in done.stdout
    assert b"It signs nothing" in done.stdout
    running = await Running.start("run", "directory", "--config", file)
    await logged(running, b"running")
    with trio.fail_after(30):
        while True:
            doctor = await hushcast("doctor", "directory", "--json", "--config", file)
            told = {found["check"]: found["found"] for found in doctor.objects}
            if "is being read" not in told["roster"]:
                break
    assert "a backup was restored" in told["restored"]
    running.process.terminate()
    assert (await running.outcome()).code == 0


async def test_a_state_of_before_is_backed_up_by_a_file_of_before(tmp_path: Path) -> None:
    """That has no line which names its program."""
    file, backup = written(tmp_path, NODE.replace('program = "node"\n', "")), tmp_path / "b"
    give_state(tmp_path / "state")
    made = await hushcast("admin", "backup", backup, "--config", file, "--json")
    assert (made.code, made.objects[0]["role"]) == (0, "relay")
    assert made.stderr.count("upgrade-config") == 1
    assert (await hushcast("admin", "upgrade-config", file)).code == 0
    restored = await hushcast("admin", "restore", backup, "--config", file, "--force")
    assert (restored.code, restored.stderr) == (0, "")


async def test_where_nothing_can_be_backed_up_or_restored(tmp_path: Path) -> None:
    file, backup = written(tmp_path, NODE), tmp_path / "b"
    missing = await hushcast("admin", "backup", backup, "--config", file)
    assert missing.code == 2
    assert "no state in" in missing.error
    give_state(tmp_path / "state")
    assert (await hushcast("admin", "backup", backup, "--config", file)).code == 0
    again = await hushcast("admin", "backup", backup, "--config", file)
    assert again.code == 2
    assert f"{backup} exists" in again.error
    assert (await hushcast("admin", "backup", backup, "--config", file, "--force")).code == 0
    for command in ("backup", "restore"):
        no_config = await hushcast(command, backup, "--config", tmp_path / "none.toml")
        assert no_config.code == 2
        assert "none.toml" in no_config.error
    client = written(tmp_path, NODE.replace('"relay"', '"client"'), state=str(tmp_path / "other"))
    other = await hushcast("admin", "restore", backup, "--config", client)
    assert other.code == 2
    assert "of a relay, and the configuration is of a client" in other.error
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("data", "code", "told"),
    [(b"", 1, "is no backup"), (b"hushcast backup 1\n{", 1, "damaged or cut short"), (None, 2, "read")],
    ids=["empty", "cut", "missing"],
)
async def test_bad_backups(tmp_path: Path, data: bytes | None, code: int, told: str) -> None:
    file, backup = written(tmp_path, NODE), tmp_path / "b"
    if data is not None:
        backup.write_bytes(data)
    outcome = await hushcast("admin", "restore", backup, "--config", file)
    assert (outcome.code, outcome.stdout) == (code, b"")
    assert told in outcome.error
    assert str(backup) in outcome.error
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("kind", ["node", "directory"])
async def test_a_newer_state_is_refused_and_left_as_it_is(tmp_path: Path, kind: str) -> None:
    text = NODE if kind == "node" else DIRECTORY
    file = written(tmp_path, text, transport="tcp", directory="127.0.0.1:1")
    state = tmp_path / "state"
    give_state(state, version=7)
    before = {path.name: path.read_bytes() for path in state.iterdir()}
    run = await hushcast(kind, "run", "--config", file)
    assert (run.code, run.stdout) == (2, b"")
    newest = 2 if kind == "node" else 1
    assert f"of version 7, and this program knows versions up to {newest}: install the version" in run.error
    assert {name: (state / name).read_bytes() for name in before} == before
    doctor = await hushcast("doctor", "--config", file)
    assert doctor.code == 1
    assert doctor.error.startswith("not well: state")
    assert "✘ state: version 7, this program knows " in doctor.stdout.decode()
    assert (await hushcast("admin", "backup", tmp_path / "b", "--config", file)).code == (
        0 if kind == "node" else 2
    )


@pytest.mark.parametrize(("version", "verdict"), [(0, "good"), (1, "good"), (2, "good"), (3, "bad")])
async def test_the_doctor_looks_at_the_state_of_a_node_that_does_not_run(
    tmp_path: Path, version: int, verdict: str
) -> None:
    file = written(tmp_path, NODE)
    give_state(tmp_path / "state", version)
    doctor = await hushcast("doctor", "--json", "--config", file)
    found = {one["check"]: one["verdict"] for one in doctor.objects}
    assert (found["configuration"], found["state"], found["daemon"]) == ("good", verdict, "bad")
    assert doctor.code == 1
    assert doctor.objects[-1]["advice"] == f"hushcast run --config {file}"
