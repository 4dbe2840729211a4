"""`key rotate`: old keys are kept aside, what they stood for is forgotten, and what follows is said."""

from __future__ import annotations

import shutil
import sqlite3
import tomllib
from pathlib import Path

import pytest
from running import Running, hushcast
from test_daemons import DIRECTORY, NODE, logged, written

from hushcast_overlay.relay.identity import KEY_FILES, RECORDS_OF_ADDRESS, RECORDS_OF_IDENTITY
from hushcast_runtime.storage.state_layout import DATABASE
from hushcast_runtime.storage.state_lock import locked

SEVERAL = (
    DIRECTORY
    + f'[authorities]\nquorum = 1\n[[authorities.members]]\nkey = "{bytes(32).hex()}"\n'
    + 'address = "{directory}"\n'
)
KEPT = Path(__file__).parents[1] / "data" / "state-3"


def kinds(state: Path) -> set[str]:
    database = sqlite3.connect(state / DATABASE)
    try:
        return {kind for (kind,) in database.execute("SELECT DISTINCT kind FROM records")}
    finally:
        database.close()


@pytest.fixture
def relay(tmp_path: Path) -> Path:
    """A configuration of a relay that has a state, and subscribes, too."""
    state = tmp_path / "state"
    shutil.copytree(KEPT / "relay-2", state)
    state.chmod(0o700)
    database = sqlite3.connect(state / DATABASE)
    database.execute("ATTACH DATABASE ? AS client", (str(KEPT / "client-0" / DATABASE),))
    database.execute("INSERT OR IGNORE INTO records SELECT * FROM client.records")
    database.commit()
    database.close()
    return written(tmp_path, NODE)


async def test_a_relay_becomes_a_new_one(relay: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    held, keys = kinds(state), {name: (state / name).read_bytes() for name in KEY_FILES}
    assert held & {*RECORDS_OF_IDENTITY} >= {"lease", "tombstone", "spool"}
    done = await hushcast("admin", "key", "rotate", "--config", relay)
    assert (done.code, done.stderr) == (0, "")
    (aside,) = state.glob("replaced-*")
    assert {path.name: path.read_bytes() for path in aside.iterdir()} == keys
    assert str(aside) in done.stdout.decode()
    assert b"new relay" in done.stdout
    assert not any((state / name).exists() for name in keys)
    assert kinds(state) == held - {*RECORDS_OF_IDENTITY, *RECORDS_OF_ADDRESS}
    assert kinds(state) >= {"interest", "mailbox", "installation", "inbox", "roster"}
    again = await hushcast("admin", "key", "rotate", "--config", relay)
    assert again.code == 2
    assert "no identity.key" in again.error


async def test_one_key_at_a_time(relay: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    held = kinds(state)
    (told,) = (
        await hushcast("admin", "key", "rotate", "--json", "--config", relay, "parcel", "filter")
    ).objects
    assert list(told) == ["state", "keys", "aside"]
    assert told["keys"] == ["parcel", "filter"]
    assert {path.name for path in Path(told["aside"]).iterdir()} == {"parcel.key", "filter.key"}
    assert kinds(state) == held
    assert (await hushcast("admin", "key", "rotate", "--config", relay, "service")).code == 0
    assert kinds(state) == held - {*RECORDS_OF_ADDRESS}


def test_all_that_a_relay_keeps_is_its_name_s_or_stays() -> None:
    """A kind of record that is new must be put on one side or the other."""
    kept = set().union(*(kinds(KEPT / f"relay-{number}") for number in range(3)))
    assert kept - {*RECORDS_OF_IDENTITY, *RECORDS_OF_ADDRESS} == {"roster", "roster-standing"}


async def test_whose_keys_are_not_replaced(relay: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    with locked(state):
        running = await hushcast("admin", "key", "rotate", "--config", relay)
    assert running.code == 2
    assert "another daemon is running" in running.error
    wrong = await hushcast("admin", "key", "rotate", "--config", relay, "author")
    assert wrong.code == 2
    database = sqlite3.connect(state / DATABASE)
    database.execute("PRAGMA user_version=9")
    database.close()
    newer = await hushcast("admin", "key", "rotate", "--config", relay)
    assert newer.code == 2
    assert "of version 9" in newer.error
    assert not list(state.glob("replaced-*"))
    client = written(tmp_path, NODE.replace('"relay"', '"client"'))
    outcome = await hushcast("admin", "key", "rotate", "--config", client)
    assert outcome.code == 2
    assert "unsubscribe, and subscribe again" in outcome.error


# A directory


async def run_once(file: Path) -> dict[str, str]:
    """Start a directory, stop it, and return the network that it tells of."""
    running = await Running.start("run", "directory", "--config", file)
    await logged(running, b"running")
    running.process.terminate()
    assert (await running.outcome()).code == 0
    network: dict[str, str] = tomllib.loads((file.parent / "state" / "network.toml").read_text())["network"]
    return network


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--no-hand-over"]], ids=["signed", "leaked"])
async def test_a_directory_gets_another_key_and_keeps_its_address(tmp_path: Path, options: list[str]) -> None:
    file = written(tmp_path, DIRECTORY, transport="tcp")
    before = await run_once(file)
    old = (tmp_path / "state" / "directory.key").read_bytes()
    (told,) = (await hushcast("admin", "key", "rotate", "--config", file, "--json", *options)).objects
    assert told["keys"] == ["signing"]
    assert told["handed_over"] is (options == [])
    assert (Path(told["aside"]) / "directory.key").read_bytes() == old
    assert (tmp_path / "state" / "directory.key").stat().st_mode & 0o777 == 0o600
    after = await run_once(file)
    assert after == before | {"directory_key": told["directory_key"]}
    people = await hushcast("admin", "key", "rotate", "--config", file, "signing", *options)
    assert people.code == 0
    assert 'directory_key = "' in people.stdout.decode()
    assert ("follow by themselves" in people.stdout.decode()) is (options == [])


@pytest.mark.slow
async def test_a_directory_gets_another_address(tmp_path: Path) -> None:
    file = written(tmp_path, DIRECTORY, transport="tcp")
    await run_once(file)
    held = kinds(tmp_path / "state")
    done = await hushcast("admin", "key", "rotate", "--config", file, "service")
    assert done.code == 0
    assert b"every member" in done.stdout
    assert kinds(tmp_path / "state") == held - {"address"}


@pytest.mark.parametrize(
    ("text", "arguments", "told"),
    [
        (DIRECTORY, ["parcel"], "a directory has no parcel key: its keys are signing, service"),
        (DIRECTORY, ["signing", "service"], "one key at a time"),
        (DIRECTORY, ["service", "--no-hand-over"], "a directory's signing key"),
        (DIRECTORY, [], "there is no state"),
        (SEVERAL, [], "known by its key"),
        (NODE, ["signing"], "a relay has no signing key"),
        (NODE, ["--no-hand-over"], "a directory's signing key"),
        (NODE, [], "there is no state"),
    ],
)
async def test_what_cannot_be_replaced(tmp_path: Path, text: str, arguments: list[str], told: str) -> None:
    outcome = await hushcast("admin", "key", "rotate", "--config", written(tmp_path, text), *arguments)
    assert (outcome.code, outcome.stdout) == (2, b"")
    assert told in outcome.error
    assert not (tmp_path / "state").exists()
