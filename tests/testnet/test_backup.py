"""A backup of a living daemon, restored elsewhere after it was killed: nothing that it held is lost."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from running_net import LONG_EPOCH

import hushcast
from hushcast_testnet import processes, testnet

TOPIC, CLIENT = "kept", "client-1"
HEARS_WITHIN = 60.0  # seconds; relays that were stopped are tried again with backoff


def run_command(*arguments: str | Path) -> None:
    """Run a command to its end; it is to succeed."""
    command = [sys.executable, "-m", "hushcast_cli.start", *map(str, arguments)]
    done = subprocess.run(command, check=False, capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")


async def heard(socket: Path, count: int) -> list[str]:
    """Return the payloads of the first so many messages kept, showing and acknowledging none."""
    payloads: list[str] = []
    async with (
        hushcast.connect(socket) as daemon,
        daemon.subscribe(TOPIC, since=0, acknowledge="manual") as messages,
    ):
        with trio.move_on_after(HEARS_WITHIN):
            while len(payloads) < count:
                payloads.append((await anext(messages)).text)
    return payloads


async def publish(socket: Path, payload: bytes, *, taken: bool) -> None:
    """Publish; return when a relay took it, or as soon as it is in the outbox."""
    async with hushcast.connect(socket) as daemon:
        publication = await daemon.enqueue(TOPIC, payload)
        if taken:
            await daemon.accepted(publication)


@pytest.fixture
def net(running_testnet: Any, tmp_path: Path) -> Iterator[Any]:
    with running_testnet(tmp_path, 3, 1, "tcp", LONG_EPOCH) as running:
        yield running


@pytest.mark.processes
async def test_what_was_not_read_and_not_taken_survives_in_a_backup(net: Any, tmp_path: Path) -> None:
    member, socket = net.member(CLIENT), net.socket(CLIENT)
    async with hushcast.connect(socket, timeout=HEARS_WITHIN) as daemon, daemon.subscribe(TOPIC):
        pass
    for payload in (b"unread 1", b"unread 2"):
        await publish(socket, payload, taken=True)
    assert len(await heard(socket, 2)) == 2
    relays = [processes.find(name, net.pid(name)) for name in net.relays]
    processes.send(relays, signal.SIGSTOP)
    try:
        await publish(socket, b"in the outbox", taken=False)
        backup, config = tmp_path / "backup", Path(member.config)
        await trio.to_thread.run_sync(run_command, "backup", backup, "--config", config)
        processes.send([processes.find(CLIENT, net.pid(CLIENT))], signal.SIGKILL)
    finally:
        processes.send(relays, signal.SIGCONT)
    while testnet.holder(Path(member.state)) is not None:  # noqa: ASYNC110
        await trio.sleep(0.05)
    other, elsewhere = tmp_path / "other.toml", tmp_path / "state"
    other.write_text(config.read_text().replace(member.state, str(elsewhere)))
    assert str(elsewhere) in other.read_text()
    await trio.to_thread.run_sync(run_command, "restore", backup, "--config", other)
    process = await processes.launch(
        CLIENT, [sys.executable, "-m", "hushcast_node", str(other)], tmp_path / "log"
    )
    try:
        with trio.fail_after(HEARS_WITHIN):
            while not (await testnet.describe(member)).get("ready"):  # noqa: ASYNC110
                await trio.sleep(0.1)
        payloads = await heard(socket, 3)
    finally:
        await processes.stop([process])
    assert sorted(payloads) == ["in the outbox", "unread 1", "unread 2"]
