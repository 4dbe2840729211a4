"""A small network whose relays take letters, and a daemon with cover as its relays see one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from several_directories import Directories
from small_network import ONE, Node, SmallNetwork, small_network, until

from hushcast_overlay.relay import admission_control
from hushcast_overlay.relay.cover.cover_desks import CoverDesks
from hushcast_overlay.routes.cover import porter_link
from hushcast_protocol.base.cover_terms import CoverTerms
from hushcast_protocol.base.crypto.proof_of_work import mint
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.cover import cover_rules
from hushcast_protocol.cover.cover_chain import CoverChain
from hushcast_protocol.cover.cover_frames import (
    CoverBills,
    CoverBlocks,
    CoverLetters,
    CoverPlace,
    CoverPlaced,
    placed_in,
)
from hushcast_protocol.cover.letter_rounds import LetterRounds
from hushcast_protocol.cover.letters import LetterRelays, seal_letter
from hushcast_protocol.cover.network_cover import network_cover
from hushcast_protocol.cover.receipt_list import listed_numbers
from hushcast_protocol.cover.topic_rounds import TopicRounds
from hushcast_protocol.cover.waybills import Waybill
from hushcast_protocol.overlay.letter_errands import DropErrand, errand_body
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.channel import Channel

ROUND = 60  # seconds
EPOCH = 120  # seconds: a day has 48 rounds
COVER = CoverTerms(ROUND, 4, 0)
RELAYS = 12
PLACE_BITS = 6  # of a place's stamp: here machines are tried, and not how long one takes


@asynccontextmanager
async def lettered_network(
    cover: CoverTerms = COVER, together: int = 1, **others: Any
) -> AsyncIterator[SmallNetwork]:
    """A network that is up and has cover, whose thirds let go together what came in so many rounds.

    `others` as for `small_network`.
    """

    def directory(network: SmallNetwork, first_roster: int) -> Directories:
        return Directories(network, first_roster, 1, 1, cover=cover)

    others = {"relays": RELAYS, "clients": 1, "epoch": EPOCH} | others
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(admission_control, "PLACE_DIFFICULTY", PLACE_BITS)
        patch.setattr(porter_link, "PLACE_DIFFICULTY", PLACE_BITS)
        patch.setattr(cover_rules, "RELEASE_ROUNDS", together)
        async with small_network(directory=directory, **others) as net:
            if cover:
                await until(lambda: all(role_of(node).desks for node in net.relays), what="all have a part")
            yield net


def role_of(node: Node) -> Any:
    """A relay's part in cover."""
    assert node.daemon.overlay.relay is not None
    return node.daemon.overlay.relay.cover


def desks_of(node: Node) -> CoverDesks:
    """The same, where the network has cover."""
    desks: CoverDesks | None = role_of(node).desks
    assert desks is not None
    return desks


class _AllRounds(TopicRounds):
    """Rounds of a topic that are all rounds: here relays are tried, and letters have a few rounds."""

    def has(self, topic: str, number: int) -> bool:
        return True


class LetterDaemon:
    """A daemon with cover: it hands four letters in each round, and hears lists."""

    def __init__(self, net: SmallNetwork) -> None:
        self.net = net
        self.draw = net.env.randomness
        roster = net.relays[0].daemon.overlay.rosters.newest
        assert roster is not None
        cover = network_cover(roster)
        self.rules = cover.rules
        self.chain = CoverChain.drawn(roster.relays, cover.lists, cover.quarter, net.now, self.draw)
        ways = (roster.relays[one] for one in (self.chain.porter, self.chain.second, self.chain.third))
        porter, second, third = ways
        waybill = Waybill.drawn(self.rules, second, third.id, self.draw)
        self.relays = LetterRelays(porter, second, third, waybill)
        self.letters = self._rounds()
        self.place = self.draw(32)
        self.placed: CoverPlaced | None = None
        self.blocks: list[CoverBlocks] = []
        self.bills: CoverBills | None = None
        """Told once on each link, if there are any."""
        self.said = -1
        self._scope = trio.CancelScope()

    def _rounds(self) -> LetterRounds:
        made = LetterRounds(self.rules, self.draw)
        made._topic_rounds = _AllRounds(self.draw)
        return made

    @property
    def now(self) -> int:
        """The round."""
        return self.rules.round_at(self.net.now)

    @property
    def porter(self) -> Node:
        return self.net.relay(self.chain.porter)

    @property
    def second(self) -> Node:
        return self.net.relay(self.chain.second)

    @property
    def third(self) -> Node:
        return self.net.relay(self.chain.third)

    def publish(self, payload: bytes, is_held: bool = False) -> None:
        message, calendar = self.net.composed(ONE, Content(payload)), self.net.calendar
        last_due = self.rules.round_at(calendar.day_start(message.day + 1)) - 2
        self.letters.publish(errand_body(DropErrand(message)), self.now, is_held, last_due)

    def come(self) -> None:
        """Be there."""
        self._scope = trio.CancelScope()
        self.net.nursery.start_soon(self._live, self._scope)

    def go(self) -> None:
        """Be away."""
        self._scope.cancel()

    async def begun(self) -> None:
        """Come, and wait until letters are passed."""
        self.come()
        await until(lambda: self.placed is not None, what="a place")
        assert self.placed is not None
        assert self.placed.refused is None
        await self.net.sleep_until(self.rules.end_of(self.placed.begins))
        self.letters = self._rounds()  # loops of letters that were thrown away are none

    async def begun_on_a_new_day(self) -> None:
        """Have begun, and wait for a day: a message is dropped on its own."""
        await self.begun()
        day = self.net.calendar.day(self.net.now) + 1
        await self.net.sleep_until(self.net.calendar.day_start(day) + 3 * ROUND)

    def sealed(self, now: int) -> tuple[bytes, ...]:
        """The letters of a round; a message is known by its body."""
        found = []
        for one in self.letters.plan(now):
            letter = seal_letter(self.rules, self.relays, one.due, one.key, self.draw)
            self.letters.note_sent(one, letter.receipt)
            found.append(letter.sealed)
        return tuple(found)

    def opening(self) -> CoverPlace:
        """What it says first."""
        asked = CoverPlace(self.place, self.chain.second, self.relays.waybill.sealed, None)
        epoch = self.net.calendar.epoch(self.net.now)
        stamp = mint(self.chain.porter, epoch, placed_in(asked), PLACE_BITS, self.draw)
        return CoverPlace(asked.place, asked.second, asked.waybill, stamp)

    async def knock(self) -> Channel[Any]:
        """Open a link to the porter, and ask for the place."""
        if not self.porter.is_up or not self.porter.daemon.ready:
            raise TransportError("it is down")
        channel: Channel[Any] = await self.net.knock(self.porter)
        await channel.send(self.opening())
        self.placed = await channel.one(60)
        return channel

    async def _live(self, scope: trio.CancelScope) -> None:
        with scope:
            while True:
                try:
                    await self._attend()
                except (TransportError, PeerError):
                    await trio.sleep(1)

    async def _attend(self) -> None:
        channel = await self.knock()
        said: list[Any] = [self.bills] if self.bills is not None else []
        try:
            while True:
                now = self.now + (self.net.now % ROUND > ROUND / 2 or self.said >= self.now)
                await self.net.sleep_until((now + 0.5) * ROUND)
                self.said = now
                letters = self.sealed(now)
                since = self.blocks[-1].round + 1 if self.blocks else now - 1
                await channel.send(*said, CoverLetters(now, since, letters))
                said = []
                while not self.blocks or self.blocks[-1].round < now - 1:
                    self._take(await channel.one(60))
        finally:
            await channel.aclose()

    def _take(self, blocks: CoverBlocks) -> None:
        self.blocks.append(blocks)
        try:
            listed = self.relays.waybill.opened_list(blocks.listed, blocks.blocks[-1])
        except PeerError:
            return
        self.letters.note_listed(listed_numbers(listed))


async def kill(net: SmallNetwork, victim: Node) -> None:
    """Take a daemon down at once, and start it again within seconds."""
    await victim.stop()
    await trio.sleep(net.env.uniform(0.0, 5.0))
    await victim.start()
