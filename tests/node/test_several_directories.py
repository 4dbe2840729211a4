"""Networks with several directories: whichever of them are away, whatever they become, nothing is lost."""

from __future__ import annotations

from functools import partial
from itertools import combinations

import pytest
import trio
from several_directories import Directories, a_set
from small_network import DAY_SECONDS, EPOCH_SECONDS, ONE, Ear, SmallNetwork, small_network, until

from hushcast_protocol.content.bodies import Content

pytestmark = pytest.mark.slow


class Traffic:
    """One publisher, and one subscriber who must hear all of it."""

    def __init__(self, net: SmallNetwork, ear: Ear) -> None:
        self._net = net
        self._ear = ear
        self.sent: list[bytes] = []

    async def publish(self) -> None:
        """Publish one message, and hear it."""
        self.sent.append(len(self.sent).to_bytes(4, "big"))
        await self._net.clients[0].daemon.service.publish(ONE, Content(self.sent[-1]))
        await self._ear.hears(len(self.sent))
        assert self._ear.payloads == self.sent


def epochs_held(net: SmallNetwork) -> list[int]:
    """The epoch of the newest roster of each daemon."""
    newest = (node.daemon.overlay.rosters.newest for node in net.nodes)
    return [roster.epoch for roster in newest if roster is not None]


async def holds(net: SmallNetwork, epoch: int) -> None:
    """Wait until all daemons have the roster of an epoch, or a later one."""
    await until(lambda: min(epochs_held(net)) >= epoch, 5 * EPOCH_SECONDS, f"the roster of {epoch}")


async def several(net: SmallNetwork) -> tuple[Directories, Traffic]:
    directories = net.directory
    assert isinstance(directories, Directories)
    return directories, Traffic(net, await net.clients[1].listen())


async def test_any_two_of_five_may_be_away_and_every_epoch_has_its_roster() -> None:
    async with small_network(relays=3, directory=partial(Directories, count=5, quorum=3)) as net:
        directories, traffic = await several(net)
        for pair in combinations(directories.all, 2):
            # Killed before, in and after the rounds of an epoch.
            await trio.sleep(net.env.uniform(0.5, 1.5) * EPOCH_SECONDS)
            for one in pair:
                await one.stop()
            await traffic.publish()
            await holds(net, net.calendar.epoch(net.now) + 2)
            await traffic.publish()
            for one in pair:
                await one.start()
            await until(
                lambda: len({one.head for one in directories.all}) == 1, 3 * EPOCH_SECONDS, "all agree again"
            )
        assert net.count("heads_refused") == 0
        assert net.count("roster_mismatches") == 0
        assert net.relays[0].daemon.status()["directories"]["fork"] is None


async def test_without_a_quorum_daemons_work_on_for_a_day_and_go_on_afterwards() -> None:
    async with small_network(relays=3, directory=partial(Directories, count=5, quorum=3)) as net:
        directories, traffic = await several(net)
        await trio.sleep(2 * EPOCH_SECONDS)
        away = directories.all[1:4]
        for one in away:
            await one.stop()
        last = max(epochs_held(net))
        for _ in range(26):
            await trio.sleep(EPOCH_SECONDS)
            await traffic.publish()
        assert max(epochs_held(net)) <= last + 1
        for one in away:
            await one.start()
        await holds(net, net.calendar.epoch(net.now) + 2)
        newest = net.relays[0].daemon.overlay.rosters.newest
        assert newest is not None
        assert set(newest.relays) == {relay.id for relay in net.relays}
        await traffic.publish()


async def test_a_network_of_one_directory_becomes_one_of_three_and_five_and_loses_nothing() -> None:
    async with small_network(relays=3, directory=partial(Directories, count=0, quorum=0)) as net:
        directories, traffic = await several(net)
        await traffic.publish()
        alone = directories.all[0].head
        assert alone is not None
        assert alone.authorities.shard_size == 0

        async def talk() -> None:
            while True:
                await traffic.publish()
                await trio.sleep(EPOCH_SECONDS)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(talk)
            directories.now = a_set(1, 1)
            directories.sit(directories.now, None)
            await directories.restart()
            await until(
                lambda: (head := directories.all[0].head) is not None and head.epoch > alone.epoch + 1,
                4 * EPOCH_SECONDS,
                "its heads go on",
            )
            for count, quorum in ((3, 2), (5, 3)):
                await directories.become(count, quorum)
                await trio.sleep(2 * EPOCH_SECONDS)
            nursery.cancel_scope.cancel()
        await directories.all[0].stop()  # nothing hangs on the first one any more
        await trio.sleep(DAY_SECONDS / 8)
        await traffic.publish()
        assert min(epochs_held(net)) >= net.calendar.epoch(net.now)
        reached = net.clients[1].daemon.status()["directories"]
        assert reached["directories"] == 5
        await net.clients[1].restart()  # its configuration names the first one alone
        await holds(net, net.calendar.epoch(net.now) + 1)
        ear = await net.clients[1].listen()
        await net.clients[0].daemon.service.publish(ONE, Content(b"after all"))
        await until(lambda: b"after all" in ear.payloads)
        assert net.count("heads_refused") == 0
        assert net.count("roster_mismatches") == 0
