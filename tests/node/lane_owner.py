"""A daemon with cover and its three lanes, as relays see it: boxes at three hosts, and what comes down."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from lettered_network import LetterDaemon, desks_of
from owner_end import TRUNK
from small_network import Node, SmallNetwork

from hushcast_overlay.relay.cover.host_desk import HostDesk
from hushcast_protocol.base.cover_terms import QUARTER
from hushcast_protocol.base.crypto.proof_of_work import mint
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import AuthenticationError
from hushcast_protocol.base.wire import decoder
from hushcast_protocol.content.messages import Message
from hushcast_protocol.cover.cover_frames import CoverBills, LanesBill
from hushcast_protocol.cover.lane_box import lane_items
from hushcast_protocol.cover.lane_papers import LANE_NAME, LaneBill, LaneErrand
from hushcast_protocol.cover.lane_pieces import LanePieces
from hushcast_protocol.cover.lane_seals import LaneKeys
from hushcast_protocol.cover.lane_seconds import LANES, LaneSeconds
from hushcast_protocol.cover.network_cover import network_cover
from hushcast_protocol.overlay.elements import ORIGIN, element
from hushcast_protocol.overlay.lane_holds import LaneHold, lane_hold
from hushcast_protocol.overlay.letter_errands import GiveErrand, errand_body
from hushcast_protocol.overlay.parcels import Parcel, instructed, price, seal_parcel

_message = decoder(Message, "message", 1 << 20)


class LaneOwner(LetterDaemon):
    """Such a daemon; `lanes` are in no use until something leads to their boxes."""

    def __init__(self, net: SmallNetwork) -> None:
        super().__init__(net)
        roster = net.relays[0].daemon.overlay.rosters.newest
        assert roster is not None
        self.roster = roster
        cover = network_cover(roster)
        self.seconds = LaneSeconds.drawn(cover.lists, self.chain, cover.quarter, self.draw).seconds
        taken = {self.chain.porter, self.chain.second, self.chain.third, *self.seconds}
        self.hosts = [node for node in net.relays if node.id not in taken][:LANES]
        self.seeds = [Seed(self.draw(32)) for _ in range(LANES)]
        self.keys = [LaneKeys.drawn(self.draw) for _ in range(LANES)]
        until = self.now + self.rules.rounds_in(QUARTER) - 100
        self.errands = [
            LaneErrand(second, self.draw(LANE_NAME), keys.host, until)
            for second, keys in zip(self.seconds, self.keys, strict=True)
        ]
        self.shown = [
            LaneBill.drawn(self.rules, roster.relays[second], errand, keys.second, host.id, self.draw)
            for second, errand, keys, host in zip(
                self.seconds, self.errands, self.keys, self.hosts, strict=True
            )
        ]
        bills = zip(self.seconds, self.shown, strict=True)
        self.bills = CoverBills(tuple(LanesBill(second, bill.sealed) for second, bill in bills))
        self._pieces = [LanePieces() for _ in range(LANES)]
        self.heard: Counter[bytes] = Counter()
        """Ids of messages that came down, and how often."""
        self.opened: list[tuple[int, int]] = []
        """Lane and round of each block that opened."""
        self._read = 0

    def asked(self, lane: int, tops: tuple[Node, ...] = (), with_errand: bool = True) -> LaneHold:
        """What it asks the host of a lane: elements for these tops, for today, if there are any."""
        host = self.roster.relays[self.hosts[lane].id]
        errand = self.errands[lane].sealed(self.rules, host, self.draw) if with_errand else None
        previous = (ORIGIN, *(top.id for top in tops)) if tops else ()
        elements = tuple(element(self.net.profile, TRUNK, host.id, one) for one in previous)
        day = self.net.calendar.day(self.net.now) if tops else 0
        lease = self.draw(16) if tops else bytes(16)
        return lane_hold(self.seeds[lane], self.net.net.id, host.id, errand, day, lease, elements)

    def parcel(self, lane: int, asked: LaneHold) -> bytes:
        """The same, sealed for the host."""
        host = self.roster.relays[self.hosts[lane].id]
        epoch = self.net.calendar.epoch(self.net.now)
        bits = price(asked, 0)
        stamp = mint(host.id, epoch, instructed(asked), bits, self.draw) if bits else None
        parcel = Parcel(self.net.net.id, host.id, epoch, asked, 0, (), self.draw(16), stamp)
        return seal_parcel(parcel, host.parcel_key, self.draw)

    def ask(self, lane: int, tops: tuple[Node, ...] = (), with_errand: bool = True) -> None:
        """Have the third tell the host of a lane, in a letter of the next round."""
        errand = GiveErrand(self.hosts[lane].id, self.parcel(lane, self.asked(lane, tops, with_errand)))
        self.letters.publish(errand_body(errand), self.now, False, self.now + 4)

    def until(self, lane: int, until: int) -> LaneErrand:
        """The errand of a lane, for another time."""
        return replace(self.errands[lane], until=until)

    def host_desk(self, lane: int) -> HostDesk:
        return desks_of(self.hosts[lane]).host

    def read(self) -> None:
        """Open the blocks that came since this was called last."""
        for blocks in self.blocks[self._read :]:
            for lane, block in enumerate(blocks.blocks[:LANES]):
                try:
                    filled = self.keys[lane].opened(blocks.round - 1, block)
                except AuthenticationError:
                    continue
                self.opened.append((lane, blocks.round))
                for item in lane_items(filled):
                    if (body := self._pieces[lane].take(item)) is not None:
                        self.heard[_message(body).id] += 1
        self._read = len(self.blocks)
