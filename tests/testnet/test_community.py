"""A testnet with a community: all are in it to begin with, and who is expelled gets nothing more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import trio
from running_net import LONG_EPOCH, RunningTestnet

from hushcast_cli.main import run
from hushcast_testnet import testnet

pytestmark = pytest.mark.processes

AUTHOR, STAYS, FAR, EXPELLED = "client-1", "client-2", "client-5", "client-3"
HEARD_WITHIN = 60.0  # seconds; measured below two


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningTestnet]:
    directory = tmp_path_factory.mktemp("community") / "net"
    testnet.up(
        directory,
        5,
        transport="tcp",
        epoch_seconds=LONG_EPOCH,
        carrier="brokers",
        edges=2,
        privacy="community",
    )
    yield RunningTestnet(directory)
    testnet.down(directory)


def keeper(network: RunningTestnet, command: str, *arguments: str) -> None:
    assert run(["community", command, str(network.directory / "keeper"), *arguments]) == 0


async def is_in(network: RunningTestnet, name: str, epoch: int | None) -> None:
    """Wait until a daemon says that it is in this epoch, or in none."""
    with trio.fail_after(HEARD_WITHIN):
        while (await network.status(name))["community"]["epoch"] != epoch:  # noqa: ASYNC110 - a daemon is asked
            await trio.sleep(0.1)


async def test_members_get_what_is_published_and_who_is_expelled_gets_no_more(
    network: RunningTestnet,
) -> None:
    async with AsyncExitStack() as ears:
        heard: dict[str, Any] = {
            name: await ears.enter_async_context(network.listening(name, "news"))
            for name in (AUTHOR, STAYS, FAR, EXPELLED)  # who is not attached hears of an epoch later
        }
        first = await network.publish(AUTHOR, "news", "for all")
        for ear in heard.values():
            await ear.until({first})
        gone = (await network.status(EXPELLED))["community"]["key"]
        await trio.to_thread.run_sync(keeper, network, "expel", gone, "--in", "0")
        await trio.to_thread.run_sync(keeper, network, "send", "--config", network.member(AUTHOR).config)
        for name in (AUTHOR, STAYS, FAR):
            await is_in(network, name, 2)
        await is_in(network, EXPELLED, None)
        more = {await network.publish(AUTHOR, "news", f"number {number}") for number in range(5)}
        for name in (AUTHOR, STAYS, FAR):
            await heard[name].until(more)
            assert heard[name].shown.keys() == {first} | more
        assert list(heard[EXPELLED].payloads) == ["for all"]
        assert (await network.status(EXPELLED))["counters"]["deliveries_refused"] == 0


def test_the_keepers_directory_is_one_as_people_make_it(
    network: RunningTestnet, capfd: pytest.CaptureFixture[str]
) -> None:
    keeper(network, "show")
    told = capfd.readouterr().out
    for name in ("root", "inner-1", "edge-2", AUTHOR, FAR):
        assert name in told
    assert oct((Path(network.directory) / "keeper" / "keeper.key").stat().st_mode & 0o777) == "0o600"
