"""Hosts, seconds and porters of readers, round after round: real blocks down, no network between."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, field
from enum import Enum

from hushcast_protocol.base.addresses import parse_address
from hushcast_protocol.base.crypto.secrets import ParcelKey
from hushcast_protocol.base.errors import AuthenticationError
from hushcast_protocol.base.roster import Relay
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.cover.cover_rules import CoverRules
from hushcast_protocol.cover.lane_box import LaneBox, lane_filled, lane_items
from hushcast_protocol.cover.lane_papers import LANE_NAME, LaneBill, LaneErrand
from hushcast_protocol.cover.lane_porter import LanePorter
from hushcast_protocol.cover.lane_seals import LaneKeys, host_block
from hushcast_protocol.cover.lane_second import LaneSecond
from hushcast_protocol.cover.lane_seconds import LANES

_FIRST_ROUND = 480_000
_ROUND_SECONDS = 3_600
_SECONDS = 4  # of the network
_START = 16  # bytes by which blocks are compared: the seals change none's place
_HELD = 30 * 24  # rounds for which its lanes hold


class LaneFault(Enum):
    """What is built wrong, for those who watch to find."""

    NONE = "none"
    EMPTY_LONGER = "an empty box is sealed a byte longer"
    PASSES_WHAT_CAME = "seconds and porters hand down only what came"
    COPIES = "the second does not change the block"


@dataclass
class LanedDaemon:
    """One reader, with its three lanes, and what was seen of it."""

    keys: list[LaneKeys]
    errands: list[LaneErrand]
    boxes: list[LaneBox[bytes]]
    porter: LanePorter
    loses: float = 0.0
    """Share of its rounds whose blocks its porter loses."""
    came: int = 0
    """Bytes of blocks that reached the porter in this round."""
    line: list[int] = field(default_factory=list)
    """Bytes of each round, as whoever watches its line sees them."""
    heard: set[bytes] = field(default_factory=set)
    held_by_porter: set[bytes] = field(default_factory=set)
    """Blocks that its porter had."""


class LanedNetwork:
    """All of it in one process."""

    def __init__(self, daemons: int, seed: int, fault: LaneFault = LaneFault.NONE) -> None:
        self._random = random.Random(seed)  # noqa: S311 - a simulation
        self._draw = self._random.randbytes
        self.fault = fault
        self.rules = CoverRules(self._draw(32), epoch_seconds=_ROUND_SECONDS, round_seconds=_ROUND_SECONDS)
        self.round = _FIRST_ROUND
        self._seconds: dict[RelayId, LaneSecond] = {}
        self._relays: list[Relay] = []
        for _ in range(_SECONDS):
            key = ParcelKey.draw(self._draw)
            relay = Relay(self._draw(32), parse_address("127.0.0.1:9"), key.public(), 0)
            self._relays.append(relay)
            self._seconds[relay.id] = LaneSecond(self.rules, relay.id, key, _FIRST_ROUND)
        self._lane_of: dict[bytes, tuple[LanedDaemon, bytes]] = {}
        self._now: dict[bytes, bytes] = {}
        self._host_key = ParcelKey.draw(self._draw)
        address = parse_address("127.0.0.1:9")
        # One for all: it sees most so.
        self._host_relay = Relay(self._draw(32), address, self._host_key.public(), 0)
        self._host = self._host_relay.id
        self.sizes: dict[bytes, list[int]] = defaultdict(list)
        """Bytes of a lane's blocks, as its second sees them."""
        self.given: dict[bytes, set[bytes]] = defaultdict(set)
        """Blocks that the host gave to a lane."""
        self.daemons = [self._daemon() for _ in range(daemons)]

    def _daemon(self) -> LanedDaemon:
        keys = [LaneKeys.drawn(self._draw) for _ in range(LANES)]
        errands, bills = [], []
        for own, relay in zip(keys, self._random.sample(self._relays, LANES), strict=True):
            errand = LaneErrand(relay.id, self._draw(LANE_NAME), own.host, self.round + _HELD)
            bill = LaneBill.drawn(self.rules, relay, errand, own.second, self._host, self._draw)
            sealed = errand.sealed(self.rules, self._host_relay, self._draw)
            errands.append(LaneErrand.opened(self.rules, self._host, self._host_key, sealed))
            bills.append((relay.id, bill.sealed, bill.name))
        porter = LanePorter(self.rules, [(second, sealed) for second, sealed, _ in bills], self._draw)
        daemon = LanedDaemon(keys, errands, [LaneBox(self.rules) for _ in range(LANES)], porter)
        for (second, sealed, name), errand in zip(bills, errands, strict=True):
            self._seconds[second].show(sealed, self.round, self._host)
            self._lane_of[name] = daemon, errand.lane
        return daemon

    def play_round(self, withheld: frozenset[bytes] = frozenset()) -> None:
        """Give, pass and hand down the blocks of one round; the host gives none to the `withheld` lanes."""
        for daemon in self.daemons:
            for second, sealed in daemon.porter.shown(self.round):
                self._seconds[second].show(sealed, self.round, self._host)
            for errand, box in zip(daemon.errands, daemon.boxes, strict=True):
                if errand.lane not in withheld:
                    self._give(errand, box)
        for relay, desk in self._seconds.items():
            for handed in desk.end_round(self.round, self._draw):
                self._hand_down(handed.bill, handed.block, relay)
        for daemon in self.daemons:
            self._read(daemon)
        self._now.clear()
        self.round += 1

    def _give(self, errand: LaneErrand, box: LaneBox[bytes]) -> None:
        is_longer = self.fault == LaneFault.EMPTY_LONGER and not len(box)
        given = host_block(errand.key, self.round, lane_filled(body for body, _ in box.said(self.round)))
        self.sizes[errand.lane].append(len(given) + is_longer)
        self.given[errand.lane].add(given)
        self._now[errand.lane] = given
        self._seconds[errand.second].take(errand.lane, self.round, given, self._host)

    def _hand_down(self, bill: bytes, block: bytes, second: RelayId) -> None:
        daemon, lane = self._lane_of[bill]
        given = self._now.get(lane)
        if self.fault == LaneFault.COPIES and given is not None:
            block = given + self._draw(len(block) - len(given))
        if self.fault == LaneFault.PASSES_WHAT_CAME and given is None:
            return
        if self._random.random() >= daemon.loses:
            daemon.porter.take(bill, block, second)
            daemon.held_by_porter.add(block)
            daemon.came += len(block)

    def _read(self, daemon: LanedDaemon) -> None:
        blocks = daemon.porter.end_round()
        passes = self.fault == LaneFault.PASSES_WHAT_CAME
        daemon.line.append(daemon.came if passes else sum(map(len, blocks)))
        daemon.came = 0
        for keys, block in zip(daemon.keys, blocks, strict=True):
            daemon.heard.update(self._opened(keys, block))

    def _opened(self, keys: LaneKeys, block: bytes) -> list[bytes]:
        try:
            return lane_items(keys.opened(self.round, block))
        except AuthenticationError:
            return []

    def shares_blocks(self, lane: bytes, daemon: LanedDaemon) -> bool:
        """Tell whether host and porter find what one gave to a lane in what the other has of a daemon."""
        starts = {block[:_START] for block in daemon.held_by_porter}
        return any(given[:_START] in starts for given in self.given[lane])
