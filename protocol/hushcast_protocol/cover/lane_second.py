"""A second of lanes: in each round it hands each of them down one block, whether its host gave one or not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from hushcast_protocol.base.crypto.secrets import ParcelKey, Randomness, sample
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, Refusal
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.cover.cover_rules import CoverRules
from hushcast_protocol.cover.lane_papers import HELD_FOR, LaneBill, bill_name
from hushcast_protocol.cover.lane_seals import HOST_BLOCK, second_block
from hushcast_protocol.cover.lane_seconds import LANES
from hushcast_protocol.cover.letter_second import MAX_WAYBILLS, MAX_WAYBILLS_OF_PORTER
from hushcast_protocol.cover.receipt_list import BLOCK

MAX_BILLS = LANES * MAX_WAYBILLS  # of one second; a daemon has three times as many lanes as waybills
# Of them that one porter shows: one of each daemon for yesterday's, today's and tomorrow's host.
MAX_BILLS_OF_PORTER = 3 * MAX_WAYBILLS_OF_PORTER


@dataclass(slots=True)
class _Lane:
    bill: LaneBill
    porter: RelayId
    last: int
    """The round in which the bill was shown last."""
    given: bytes | None = None


@dataclass(frozen=True, slots=True)
class LaneBlock:
    """A block as a second hands it to a porter."""

    porter: RelayId
    bill: bytes
    """Its name."""
    block: bytes


class LaneSecond:
    """One relay as a second of lanes."""

    def __init__(self, rules: CoverRules, relay: RelayId, key: ParcelKey, first: int) -> None:
        """`first` is the first round of which it takes blocks: after a start the next, as keys seal once."""
        self._rules = rules
        self._relay = relay
        self._key = key
        self._next = first
        self._lanes: dict[bytes, _Lane] = {}
        self._by_host: dict[tuple[RelayId, bytes], _Lane] = {}
        self._of_porter: Counter[RelayId] = Counter()

    def __len__(self) -> int:
        """Return how many lanes it carries."""
        return len(self._lanes)

    def names(self) -> Collection[bytes]:
        """Return the names of the bills of all of them."""
        return self._lanes.keys()

    def show(self, sealed: bytes, now: int, porter: RelayId) -> bool:
        """Take a bill from a porter; tell whether it is new, and so has its price.

        Raises `AuthenticationError` where it is not for this relay, and `Refusal`: "day" where it holds no
        more, or for longer than `HELD_FOR`; "quota" where there are too many, of all porters or of this one;
        "lane" where its name is taken. A bill of the same key that holds for longer follows the one before,
        also from another porter: its daemon has gone there.
        """
        name = bill_name(sealed)
        if name in self._lanes:
            if self._lanes[name].porter != porter:
                raise Refusal("lane")
            self._lanes[name].last = now
            return False
        bill = LaneBill.opened(self._rules, self._relay, self._key, sealed)
        if not now <= bill.until <= now + self._rules.rounds_in(HELD_FOR):
            raise Refusal("day")
        before = self._by_host.get((bill.host, bill.lane))
        if before is not None and (before.bill.key != bill.key or before.bill.until >= bill.until):
            raise Refusal("lane")
        own = self._of_porter[porter] - (before is not None and before.porter == porter)
        if len(self._lanes) - (before is not None) >= MAX_BILLS or own >= MAX_BILLS_OF_PORTER:
            raise Refusal("quota")
        if before is not None:
            self._forget(before)
        self._lanes[name] = self._by_host[bill.host, bill.lane] = _Lane(bill, porter, now)
        self._of_porter[porter] += 1
        return True

    def take(self, lane: bytes, number: int, block: bytes, host: RelayId) -> None:
        """Take a host's block of the round that ends next.

        Raises `DecodeError` where it has another size, `AuthenticationError` where no bill names this host
        and lane, and `Refusal`: "day" where it is of another round, "rate" over one of a round.
        """
        if len(block) != HOST_BLOCK:
            raise DecodeError("a block of a lane is of another size")
        known = self._by_host.get((host, lane))
        if known is None:
            raise AuthenticationError("nobody showed a bill for this lane of this host")
        if number != self._next:
            raise Refusal("day")
        if known.given is not None:
            raise Refusal("rate")
        known.given = block

    def end_round(self, now: int, randomness: Randomness) -> Iterator[LaneBlock]:
        """Give one block for each lane, in random order: sealed, or random where its host gave none.

        Each is sealed when it is asked for, some 10 us; what is handed is settled at once. A lane whose
        bill holds no more, or that its porter has not shown for two days, ends.
        """
        is_due = now == self._next
        handed = [(lane, lane.given if is_due else None) for lane in self._lanes.values()]
        for lane in self._lanes.values():
            lane.given = None
        self._next = now + 1
        least = now - 2 * self._rules.held_rounds
        for lane in [one for one, _ in handed if one.last < least or one.bill.until <= now]:
            self._forget(lane)
        return self._sealed(sample(randomness, handed, len(handed)), now, randomness)

    @staticmethod
    def _sealed(
        handed: list[tuple[_Lane, bytes | None]], now: int, randomness: Randomness
    ) -> Iterator[LaneBlock]:
        for lane, given in handed:
            block = randomness(BLOCK) if given is None else second_block(lane.bill.key, now, given)
            yield LaneBlock(lane.porter, lane.bill.name, block)

    def _forget(self, lane: _Lane) -> None:
        del self._lanes[lane.bill.name]
        del self._by_host[lane.bill.host, lane.bill.lane]
        self._of_porter[lane.porter] -= 1
