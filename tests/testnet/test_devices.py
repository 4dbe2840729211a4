"""Three devices of one person as processes: they share, one is killed, comes back, and all hold the same."""

from __future__ import annotations

import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

import hushcast
from hushcast_testnet import processes, testnet

EPOCH_SECONDS = 8
TOLD_WITHIN = 5.0 * EPOCH_SECONDS  # a beat and what it answers, on a machine with other work
NAMES = ["client-1", "client-2", "client-3"]


@pytest.fixture
def net(running_testnet: Any, tmp_path: Path) -> Iterator[Any]:
    with running_testnet(tmp_path, 3, len(NAMES), "tcp", EPOCH_SECONDS) as running:
        yield running


async def is_so(condition: Callable[[], Awaitable[bool]], within: float, what: str) -> None:
    with trio.move_on_after(within):
        while not await condition():  # noqa: ASYNC110
            await trio.sleep(0.5)
        return
    raise AssertionError(f"after {within} seconds it is still not so: {what}")


async def wanted(socket: Path) -> int:
    """Return how many subscriptions there are, and will be."""
    async with hushcast.connect(socket) as daemon:
        status = await daemon.status()
    return int(status["subscriptions"] + status["planned"])


async def authors(socket: Path) -> set[str]:
    async with hushcast.connect(socket) as daemon:
        return set(await daemon.shared_authors())


@pytest.mark.processes
@pytest.mark.slow
async def test_three_devices_hold_the_same_after_one_was_killed_and_away(net: Any, tmp_path: Path) -> None:
    sockets = [net.socket(name) for name in NAMES]
    one, two, three = sockets
    for number, other in enumerate((two, three), 2):
        async with hushcast.connect(one) as daemon, hushcast.connect(other) as joining:
            invitation = await daemon.invite_device("device 1")
            await joining.join_devices(invitation.link, f"device {number}", timeout=60)
    pens = [hushcast.new_author(tmp_path / f"{number}.key") for number in range(2)]
    async with hushcast.connect(one) as daemon:
        await daemon.share_author("before", pens[0])
        async with daemon.subscribe(hushcast.new_link("family", private=True)):
            pass

    async def have(*names: str) -> bool:
        return [await authors(socket) for socket in sockets] == [{*names}] * 3

    await is_so(lambda: have("before"), TOLD_WITHIN, "all have heard of it")
    member = net.member(NAMES[2])
    processes.send([processes.find(NAMES[2], net.pid(NAMES[2]))], signal.SIGKILL)
    async with hushcast.connect(two) as daemon:
        await daemon.share_author("meanwhile", pens[1])
        async with daemon.subscribe(hushcast.new_link("friends", private=True)):
            pass
    while testnet.holder(Path(member.state)) is not None:  # noqa: ASYNC110
        await trio.sleep(0.05)
    await trio.sleep(2 * EPOCH_SECONDS)
    process = await processes.launch(
        NAMES[2], [sys.executable, "-m", "hushcast_node", str(member.config)], tmp_path / "log"
    )
    try:
        await is_so(lambda: _is_ready(member), TOLD_WITHIN, "it is back")
        await is_so(lambda: have("before", "meanwhile"), TOLD_WITHIN, "all have heard of both")

        async def are_equal() -> bool:
            return [await wanted(socket) for socket in sockets] == [2, 2, 2]

        await is_so(are_equal, TOLD_WITHIN, "all subscribe to both, or will")
    finally:
        await processes.stop([process])


async def _is_ready(member: Any) -> bool:
    return bool((await testnet.describe(member)).get("ready"))
