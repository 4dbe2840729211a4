"""Relays that pass no parcels on answer as if all below had carried out theirs, and work together at it.

They want subscriptions that count relays, and tell none of them again, where nothing was installed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
import trio
from small_network import EPOCH_SECONDS, ONE, TWO, Node, SmallNetwork, small_network, until

from hushcast_protocol.base.crypto.hashes import LABEL
from hushcast_protocol.base.versions.manner import NEWEST
from hushcast_protocol.overlay.confirmations import MAX_CONFIRMATIONS, confirm, room
from hushcast_protocol.overlay.frames import ParcelAnswer
from hushcast_protocol.overlay.leases import Install, ToHost, ToListedHost
from hushcast_protocol.overlay.parcels import open_parcel

RELAYS = 8
Lie = Callable[[bytes, int, list[bytes]], list[bytes]]
"""Returns what is claimed, of a relay's own confirmation, the room, and all that liars have heard of."""

LIES: dict[str, Lie] = {
    "nothing": lambda own, most, heard: [own],
    "made up": lambda own, most, heard: [own, *(os.urandom(LABEL) for _ in range(most - 1))],
    "repeated": lambda own, most, heard: [own] * most,
    "of others": lambda own, most, heard: [own, *heard[1 - MAX_CONFIRMATIONS :]],
    "too many": lambda own, most, heard: [own, *(os.urandom(LABEL) for _ in range(MAX_CONFIRMATIONS - 1))],
}


def listens_in(node: Node, heard: list[bytes]) -> None:
    """Have a relay tell the liars what it answers, and what it was answered."""
    relay: Any = node.daemon.overlay.relay
    take = relay.parcels.take

    async def taken(sealed: bytes, previous: bytes) -> ParcelAnswer:
        answer: ParcelAnswer = await take(sealed, previous)
        heard.extend(answer.confirmations)
        return answer

    relay.parcels.take = taken


def lies(net: SmallNetwork, node: Node, lie: Lie, heard: list[bytes]) -> None:
    """Have a relay carry out its instructions, pass on nothing, and claim that all below have done theirs."""
    relay: Any = node.daemon.overlay.relay
    identity = node.identity
    assert identity is not None

    async def taken(sealed: bytes, previous: bytes) -> ParcelAnswer:
        epoch = net.calendar.epoch(net.now)
        parcel = open_parcel(sealed, identity.parcel_key, net.net.id, node.id, epoch)
        await relay.parcels._carry_out(parcel, previous, False)
        honest = confirm(parcel.word, heard[-MAX_CONFIRMATIONS:], 0, os.urandom)
        (own,) = confirm(parcel.word, (), 0, os.urandom)
        heard.extend([parcel.word, *honest])
        return ParcelAnswer(0, None, tuple(sorted(lie(own, room(len(sealed)), heard))))

    relay.parcels.take = taken


def held(node: Node) -> int:
    assert node.daemon.overlay.relay is not None
    return len(node.daemon.overlay.relay.leases.book)


@pytest.mark.parametrize("lie", LIES)
async def test_who_claims_that_others_confirmed_has_them_told_by_somebody_else(lie: str) -> None:
    async with small_network(relays=RELAYS, clients=2, epoch=36000) as net:
        heard: list[bytes] = []
        for relay in net.relays:
            listens_in(relay, heard)
        await net.clients[0].listen(TWO)
        assert heard
        before = [held(relay) for relay in net.relays]
        silent = net.relays[0]
        silent.gate.shut()
        for relay in net.relays[1:]:
            lies(net, relay, LIES[lie], heard)
        ear = await net.clients[1].listen(ONE)
        (planned,) = net.clients[1].route().planned.values()
        assert planned.unconfirmed == {silent.id}
        assert ear.feed.nodes == planned.nodes == net.seats - 1
        assert [held(relay) for relay in net.relays[1:]] == [count + 1 for count in before[1:]]
        assert any(planned.installation.tree.children.get(relay.id) for relay in net.relays[1:])


@pytest.mark.slow
async def test_what_confirmed_today_confirms_nothing_of_tomorrow() -> None:
    async with small_network(relays=RELAYS, clients=1) as net:
        heard: list[bytes] = []
        await net.clients[0].listen()
        for relay in net.relays:
            lies(net, relay, LIES["of others"], heard)
        planned = net.clients[0].route().planned
        await until(lambda: len(planned) == 2, 24 * EPOCH_SECONDS, "tomorrow is planned")
        tomorrow = planned[max(planned)]
        await until(lambda: not tomorrow.unconfirmed, EPOCH_SECONDS, "tomorrow is installed")
        assert [held(relay) for relay in net.relays] == [2] * RELAYS


async def test_nobody_is_subscribed_while_all_at_the_top_refuse() -> None:
    """Those below confirm, told by the subscriber itself; nothing that they take arrives."""
    async with small_network(relays=RELAYS, clients=1, epoch=36000) as net:
        refusing = True

        def refuses_at_the_top(node: Node) -> None:
            relay: Any = node.daemon.overlay.relay
            identity, take = node.identity, relay.parcels.take
            assert identity is not None

            async def taken(sealed: bytes, previous: bytes) -> ParcelAnswer:
                epoch = net.calendar.epoch(net.now)
                instruction = open_parcel(sealed, identity.parcel_key, net.net.id, node.id, epoch).instruction
                hop = instruction.next_hop if isinstance(instruction, Install) else None
                if refusing and isinstance(hop, ToHost | ToListedHost):
                    return ParcelAnswer(0, "quota", ())
                answer: ParcelAnswer = await take(sealed, previous)
                return answer

            relay.parcels.take = taken

        for relay in net.relays:
            refuses_at_the_top(relay)
        with trio.move_on_after(NEWEST.longest_pause / 2) as too_long:
            await net.clients[0].listen()
        assert too_long.cancelled_caught
        (planned,) = net.clients[0].route().planned.values()
        tops = set(planned.installation.tree.children[None])
        assert planned.unconfirmed == tops
        assert planned.nodes == net.seats - len(tops) > 0
        refusing = False
        ear = await net.clients[0].listen()
        assert ear.feed.nodes > net.seats - len(tops), "one at the top confirmed"
        await until(
            lambda: planned.nodes == net.seats, 2 * net.epoch, "who refused in that round is told again"
        )
