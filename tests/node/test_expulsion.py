"""Three directories with lists of relays that lose messages: two of them decide, and one alone does not.

What the lists say is found out by real daemons' probes, one hidden subscription after another.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import small_network as networks
import trio
from several_directories import Directories
from small_network import EPOCH_SECONDS, Node, SmallNetwork, small_network, until

from hushcast_directory.server.expulsion_list import ExpulsionList, read, write
from hushcast_directory.server.hidden_subscriptions import HiddenSubscriptions
from hushcast_node.overlay_doctor import examine_overlay
from hushcast_protocol.authorities.expulsion import ExpelledRelay, LossTrial
from hushcast_protocol.content.predicates import parse_where
from hushcast_protocol.content.tokens import hashed_topic_key
from hushcast_protocol.content.topics import Interest, parse_topic
from hushcast_protocol.overlay.forwarding import ForwardingDecision, ForwardingOutcome

pytestmark = pytest.mark.slow

RELAYS = 6
PROBES = 5.0  # an epoch of each subscription


class Loses:
    """A router that confirms everything and sends nothing."""

    def route(self, *_: object) -> ForwardingDecision:
        return ForwardingDecision(ForwardingOutcome.DUPLICATE)

    def use_label(self, label: bytes) -> None:
        pass

    def entry(self, *_: object) -> tuple[bytes, ...]:
        return ()

    def unsent(self, *_: object) -> None:
        pass


class Client:
    """A daemon as `HiddenSubscriptions` needs it, without a socket in between."""

    def __init__(self, node: Node) -> None:
        self._node = node

    async def subscribe(self, topic: str) -> None:
        interest = Interest(parse_topic(topic), parse_where("", ()))
        (await self._node.daemon.service.subscribe(interest)).close()

    async def unsubscribe(self, topic: str) -> None:
        await self._node.daemon.service.unsubscribe(parse_topic(topic))

    async def losses(self, topic: str) -> LossTrial | None:
        await trio.lowlevel.checkpoint()
        (told,) = await self._node.daemon.service.coverage(parse_topic(topic), losses=True)
        return {bytes.fromhex(relay): (lost, passed) for relay, (lost, passed) in told["losses"].items()}


def seats(net: SmallNetwork) -> set[bytes]:
    """Whom the rosters of all daemons that are not behind list."""
    rosters = [node.daemon.overlay.rosters.newest for node in net.nodes]
    newest = max(roster.epoch for roster in rosters if roster is not None)
    lists = [set(roster.relays) for roster in rosters if roster is not None and roster.epoch == newest]
    assert all(one == lists[0] for one in lists)
    return lists[0]


async def test_two_of_three_expel_who_loses_messages_and_it_loses_its_seat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of hidden topics there is another all the time, and to stretch their keys took a third of all.
    monkeypatch.setattr(networks, "derive", hashed_topic_key)
    directory = partial(Directories, count=3, quorum=2)
    async with small_network(relays=RELAYS, clients=2, directory=directory, probes_an_epoch=PROBES) as net:
        bad = net.relays[4]
        assert bad.daemon.overlay.relay is not None
        bad.daemon.overlay.relay.forwarding._router = Loses()  # type: ignore[assignment]
        assert isinstance(net.directory, Directories)
        files = [tmp_path / str(number) for number in range(2)]
        for number, file in enumerate(files):
            net.directory.all[number].expelled = ExpulsionList(file)
            env = net.environment(f"authority {number}")
            client = Client(net.clients[number])
            net.nursery.start_soon(HiddenSubscriptions(client, net.calendar, env, file, 8).run)
        day = 24 * EPOCH_SECONDS
        await until(lambda: all(map(read, files)), 3 * day, "both lists name somebody")
        assert [{one.relay for one in read(file)} for file in files] == [{bad.id}] * 2
        await until(lambda: bad.id not in seats(net), 3 * EPOCH_SECONDS, "its seat is lost")
        assert seats(net) == {relay.id for relay in net.relays if relay is not bad}
        # It is told why when it registers next.
        problem = "loses messages"
        await until(
            lambda: problem in (bad.daemon.status()["registration"] or ""), 2 * EPOCH_SECONDS, "it is told"
        )
        assert "1 of 3 directories took it" in bad.daemon.status()["registration"]
        found = await examine_overlay(bad.daemon.overlay, None, True, net.env)
        told = next(finding for finding in found if finding.check == "registration")
        assert "leaves the relay out until" in told.found


async def test_one_of_three_alone_expels_nobody(tmp_path: Path) -> None:
    directory = partial(Directories, count=3, quorum=2)
    async with small_network(relays=6, clients=1, directory=directory) as net:
        assert isinstance(net.directory, Directories)
        honest, file = net.relays[2], tmp_path / "expelled"
        one = net.directory.all[0]
        one.expelled = ExpulsionList(file)
        write(file, [ExpelledRelay(honest.id, net.calendar.epoch(net.now))])
        for _ in range(6):
            await trio.sleep(EPOCH_SECONDS)
            assert seats(net) == {relay.id for relay in net.relays}
        # It serves what the others decided, with descriptors that it had from them.
        assert len({other.head for other in net.directory.all}) == 1
        assert honest.daemon.status()["registration"] is None
        listed = ExpulsionList(file)
        net.directory.all[1].expelled = listed
        await until(lambda: honest.id not in seats(net), 3 * EPOCH_SECONDS, "two of three do")
        write(file, [])
        await until(lambda: honest.id in seats(net), 4 * EPOCH_SECONDS, "it comes back")
