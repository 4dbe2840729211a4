"""`--node`: the daemon of that name in the testnet that runs; errors say what there is and what to type."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from fake_daemon import FakeDaemon
from running import environment, hushcast

from hushcast_cli import completion_values
from hushcast_cli.last_testnet import remember_testnet, remembered_testnets
from hushcast_runtime.storage.state_lock import locked
from hushcast_testnet import inventory
from hushcast_testnet.inventory import FILE, Member


@pytest.fixture
def remembering(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return the environment of a user whose testnets are remembered below `tmp_path`."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "memory"))
    return environment(XDG_STATE_HOME=str(tmp_path / "memory"))


def started(folder: Path, *names: str, socket: Path | None = None) -> Path:
    """Leave what `testnet up` leaves of a testnet with a directory and these clients."""
    members = [Member("directory", "directory", f"{folder}/directory.toml", f"{folder}/directory", None)]
    members += [
        Member(
            name, "client", f"{folder}/{name}.toml", f"{folder}/{name}", str(socket or folder / name / "c")
        )
        for name in names
    ]
    for member in members:
        Path(member.state).mkdir(parents=True)
    (folder / FILE).write_bytes(msgspec.json.encode(inventory.Testnet("tcp", 20, 0.0, members, None)))
    remember_testnet(folder)
    return folder


@contextlib.contextmanager
def running(*folders: Path) -> Iterator[None]:
    """Have a daemon of each of these testnets run: this process holds its state."""
    with contextlib.ExitStack() as held:
        for folder in folders:
            held.enter_context(locked(folder / "directory"))
        yield


async def refused(env: dict[str, str], name: str = "client-1") -> str:
    outcome = await hushcast("--node", name, "status", env=env)
    assert (outcome.code, outcome.stdout) == (2, b"")
    return outcome.error


async def test_it_is_found_before_and_behind_the_command(
    daemon: FakeDaemon, tmp_path: Path, remembering: dict[str, str]
) -> None:
    nowhere = str(tmp_path / "none")
    with running(started(tmp_path / "net", "client-1", socket=daemon.socket)):
        for words in (["--node", "client-1", "status"], ["status", "--node", "client-1"]):
            outcome = await hushcast(*words, "--json", env=remembering)
            assert (outcome.code, outcome.stderr) == (0, "")
            assert outcome.objects == [daemon.status()]
        there = remembering | {"HUSHCAST_SOCKET": nowhere}
        assert (await hushcast("status", "--node", "client-1", env=there)).code == 0
        assert (await hushcast("--socket", nowhere, "status", "--node", "client-1", env=there)).code == 0
        assert (
            await hushcast("--node", "client-1", "status", "--socket", nowhere, env=remembering)
        ).code == 3
        both = await hushcast("status", "--socket", nowhere, "--node", "client-1", env=remembering)
        assert (both.code, "give --socket or --node, not both" in both.error) == (2, True)


async def test_none_was_started(remembering: dict[str, str]) -> None:
    assert "no testnet was started: `hushcast testnet up` does" in await refused(remembering)


async def test_it_is_gone_or_does_not_run(tmp_path: Path, remembering: dict[str, str]) -> None:
    net = started(tmp_path / "net", "client-1")
    assert f"the testnet in {net} does not run: `hushcast testnet up`" in await refused(remembering)
    (net / FILE).unlink()
    assert f"the testnet in {net} is there no more: `hushcast testnet up`" in await refused(remembering)


async def test_the_name_is_nobodys(tmp_path: Path, remembering: dict[str, str]) -> None:
    net = started(tmp_path / "net", *(f"client-{number}" for number in range(1, 9)))
    with running(net):
        assert "'clinet-1': did you mean client-1" in await refused(remembering, "clinet-1")
        told = await refused(remembering, "bob")
        assert f"the testnet in {net} has no 'bob'; its nodes are client-1, client-2, " in told
        assert told.endswith("client-6, …")
        assert "directory is no node and has no control socket" in await refused(remembering, "directory")


async def test_of_several_the_one_that_runs_is_meant_or_the_one_that_is_named(
    daemon: FakeDaemon, tmp_path: Path, remembering: dict[str, str]
) -> None:
    first = started(tmp_path / "first", "client-1", socket=daemon.socket)
    second = started(tmp_path / "second", "client-1", "client-2")
    assert remembered_testnets() == [first, second]
    with running(first):
        assert (await hushcast("--node", "client-1", "status", env=remembering)).code == 0
    with running(first, second):
        told = await refused(remembering)
        assert f"there is a client-1 in {first} and {second}: set HUSHCAST_TESTNET" in told
        named = remembering | {"HUSHCAST_TESTNET": str(first)}
        assert (await hushcast("--node", "client-1", "status", env=named)).code == 0
    gone = remembering | {"HUSHCAST_TESTNET": str(tmp_path / "none")}
    assert f"there is no testnet in {tmp_path / 'none'}" in await refused(gone)


def test_the_memory_is_bounded_and_forgets_what_is_gone(tmp_path: Path, remembering: dict[str, str]) -> None:
    nets = [tmp_path / str(number) for number in range(20)]
    for net in nets:
        net.mkdir()
        remember_testnet(net)
    assert remembered_testnets() == nets[-16:]
    nets[-2].rmdir()
    remember_testnet(nets[-3])
    assert remembered_testnets() == [*nets[-16:-3], nets[-1], nets[-3]]


def test_a_shell_suggests_names(tmp_path: Path, remembering: dict[str, str]) -> None:
    assert completion_values.nodes("") == []
    with running(started(tmp_path / "net", "client-1", "client-2")):
        assert completion_values.nodes("client-2") == ["client-2"]


async def test_the_doctor_looks_at_what_has_no_socket_and_at_what_does_not_run(
    tmp_path: Path, remembering: dict[str, str]
) -> None:
    net = started(tmp_path / "net", "client-1")
    text = 'state = "{}"\ntransport = "tcp"\n[network]\nname = "mine"\n'
    (net / "directory.toml").write_text('program = "directory"\n' + text.format(tmp_path / "d"))
    (net / "client-1.toml").write_text('program = "node"\nrole = "client"\n' + text.format(tmp_path / "c"))
    with running(net):
        told = await hushcast("doctor", "--node", "directory", env=remembering)
        assert told.code == 1
        assert f"✔ configuration: {net / 'directory.toml'}, a directory's\n" in told.stdout.decode()
        told = await hushcast("doctor", "--node", "client-1", env=remembering)
        assert told.code == 1
        assert f"✘ configuration: {net / 'client-1.toml'}: network.directory" in told.stdout.decode()
