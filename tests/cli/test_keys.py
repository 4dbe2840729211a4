"""`hushcast admin key new` and `publish --as`: who signs, and which files are not used."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_daemon import FakeDaemon
from running import Running, hushcast, side_by_side


async def made(file: Path) -> str:
    """Make a key and return its fingerprint."""
    outcome = await hushcast("admin", "key", "new", file)
    assert (outcome.code, outcome.stderr) == (0, "")
    return outcome.stdout.decode().strip()


async def test_a_key_is_its_owners_alone_and_never_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "author.key"
    assert len(bytes.fromhex(await made(file))) == 16
    assert (len(file.read_bytes()), file.stat().st_mode & 0o777) == (32, 0o600)
    before = file.read_bytes()
    again = await hushcast("admin", "key", "new", file)
    assert (again.code, again.stdout) == (2, b"")
    assert str(file) in again.error
    assert file.read_bytes() == before
    other = tmp_path / "other.key"
    (told,) = (await hushcast("admin", "key", "new", other, "--json")).objects
    assert list(told) == ["file", "fingerprint"]
    assert told["file"] == str(other)
    assert before.hex() not in str(told)


@pytest.mark.slow
async def test_readers_see_the_same_author_on_all_messages_signed(daemon: FakeDaemon, tmp_path: Path) -> None:
    file = tmp_path / "author.key"
    fingerprint = await made(file)
    listener = await Running.start("--json", "--socket", daemon.socket, "subscribe", "t", "--count", "3")
    people = await Running.start("--socket", daemon.socket, "subscribe", "t", "--count", "3")
    await listener.object()
    await daemon.service.until_feeds(2)
    for arguments in (["--as", file, "one"], ["--as", file, "two"], ["three"]):
        assert (await hushcast("--socket", daemon.socket, "publish", "t", *arguments)).code == 0
    events = (await listener.outcome()).objects
    assert list(events[0])[-1] == "author"
    assert [event.get("author", "nobody") for event in events] == [fingerprint, fingerprint, "nobody"]
    shown = (await people.outcome()).stdout.decode()
    about = f"[author={fingerprint}]"
    assert shown == f"{about}\none\n{about}\ntwo\nthree\n"


@pytest.mark.parametrize("mode", [0o644, 0o640])
async def test_a_key_that_others_can_read_is_not_used(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "author.key"
    await made(file)
    file.chmod(mode)
    outcome = await hushcast("--socket", tmp_path / "none", "publish", "t", "x", "--as", file)
    assert outcome.code == 2
    assert f"{file}: chmod 600" in outcome.error


async def test_files_that_are_no_keys(tmp_path: Path) -> None:
    missing, short, long = tmp_path / "none", tmp_path / "short", tmp_path / "long"
    for file, size in ((short, 31), (long, 33)):
        file.write_bytes(bytes(size))
        file.chmod(0o600)
    files = (missing, short, long, tmp_path)
    commands = [["--socket", tmp_path / "x", "publish", "t", "x", "--as", file] for file in files]
    commands.append(["key", "new", tmp_path / "no" / "directory"])
    outcomes = await side_by_side(*commands)
    for file, outcome in zip([*files, tmp_path / "no" / "directory"], outcomes, strict=True):
        assert (outcome.code, outcome.stdout) == (2, b"")
        assert str(file) in outcome.error
