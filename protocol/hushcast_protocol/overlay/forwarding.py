"""The forwarding decision: which next hops a message goes to, to each once."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Sequence, Set
from enum import Enum

import msgspec

from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.content.hops import Hop, HopMessage
from hushcast_protocol.content.messages import MAX_TOKENS, Message
from hushcast_protocol.overlay.elements import ORIGIN, element
from hushcast_protocol.overlay.hops import boxes_among, is_box
from hushcast_protocol.overlay.leases import LeaseBook
from hushcast_protocol.overlay.profile import Profile
from hushcast_protocol.overlay.trail import MAX_BITS_SET, label_bits, trail_bits, trail_of

MAX_IDS = 32_768  # messages remembered; about 10 MB, and five minutes at 100 messages a second
MAX_SENDS = 500_000  # next hops of all of them; 4 MB more, however few the messages
MAX_FOUND = 1024  # trees and previous hops from where the way on is known until leases change; 1 MB
MAX_TRAILS = 1024  # trails of previous hops that are read once for each label; 0.5 MB
_WIDE = 64  # next hops of one from which on it is not: to look them up is a small part of what they cost
CIRCULATION = 600.0  # seconds within which a message can come back to a relay: links retry, relays restart


class ForwardingOutcome(Enum):
    """What became of a message at this relay."""

    FORWARDED = "forwarded"
    DUPLICATE = "duplicate"  # all that it asks for was sent before
    UNROUTED = "unrouted"  # no next hop: this relay is no seat of a tree for it, or nobody subscribes
    LOOP = "loop"  # its trail says that it was here, and memory cannot say otherwise


class ForwardingDecision(msgspec.Struct, frozen=True, gc=False):
    """What to do with a message."""

    outcome: ForwardingOutcome
    sends: tuple[HopMessage, ...] = ()
    popcount: int = 0  # of the trail as it came
    is_again: bool = False  # it was dropped here before, and there was no room for some of its next hops
    boxes: tuple[Hop, ...] = ()  # those that it leads to, also where they have had it by another relay


class KnownId(msgspec.Struct, frozen=True, gc=False):
    """The entry for one id under one trunk: since when, from whom, and where it was sent.

    A tuple, because a set for each of many thousands takes three times the memory.
    """

    since: float
    link: bytes  # the previous hop that brought it first
    sent: tuple[Hop, ...]
    is_owed: bool = False  # to a next hop that there was no room for: `unsent` was the last call for it


class _Way(msgspec.Struct, frozen=True, gc=False):
    """Where all messages of one tree go on that come from one previous hop."""

    hops: tuple[Hop, ...]
    boxes: tuple[Hop, ...]  # those among them


class _Passed(msgspec.Struct, frozen=True, gc=False):
    """What all messages have in common that came by the same relays."""

    popcount: int  # of the trail as it came
    is_back: bool  # whether it says that they were here
    onward: bytes  # the trail as it goes on; empty where it has no room for another relay


class RecentIds:
    """Exact memory for duplicate suppression: for each id and trunk the next hops it was sent to.

    An honest message keeps its trunk on its whole path. A true body under another trunk counts as another
    message: it can neither suppress the true one nor make its entry grow, and takes up an entry of its own.

    When it is full, it evicts the oldest entry of the previous hop with the most messages, or with the most
    next hops, whichever cap is reached: so a flooder evicts only its own entries.
    """

    def __init__(self, now: float, capacity: int = MAX_IDS) -> None:
        self._capacity = capacity
        self._complete_since = now
        self._sent: dict[bytes, KnownId] = {}  # by id and trunk
        self._by_link: dict[bytes, deque[bytes]] = {}  # these by the previous hop that brought them first
        self._pairs = 0
        self._pairs_by_link: Counter[bytes] = Counter()

    def __len__(self) -> int:
        """Return the number of messages remembered."""
        return len(self._sent)

    def knows(self, message_id: bytes, trunk: bytes) -> bool:
        """Tell whether an id is remembered under this trunk."""
        return message_id + trunk in self._sent

    def may_have_forgotten(self, now: float) -> bool:
        """Tell whether an unknown id may have been here all the same: after a restart or an eviction."""
        return now - self._complete_since < CIRCULATION

    def sent(self, message_id: bytes, trunk: bytes) -> Collection[Hop]:
        """Return the next hops that an id was sent to under a trunk."""
        known = self._sent.get(message_id + trunk)
        return frozenset(known.sent) if known is not None else frozenset()

    def entry(self, message_id: bytes, trunk: bytes) -> KnownId | None:
        """Return what is remembered of an id under a trunk."""
        return self._sent.get(message_id + trunk)

    def note(self, message_id: bytes, trunk: bytes, link: bytes, now: float, hops: Sequence[Hop]) -> None:
        """Remember that an id, brought by the previous hop `link`, was sent to next hops under a trunk."""
        name = message_id + trunk
        known = self._sent.get(name)
        if known is None:
            if (beside := self._by_link.get(link)) is None:
                beside = self._by_link[link] = deque()
            beside.append(name)
            new = tuple(hops) if len(hops) == 1 else tuple(dict.fromkeys(hops))
            self._sent[name] = KnownId(now, link, new)
        else:
            link = known.link
            sent = frozenset(known.sent)
            new = tuple([hop for hop in dict.fromkeys(hops) if hop not in sent])
            self._sent[name] = KnownId(known.since, link, known.sent + new)
        self._pairs += len(new)
        self._pairs_by_link[link] += len(new)
        while len(self._sent) > self._capacity or self._pairs > MAX_SENDS:
            self._forget_one(link)

    def unsent(self, message_id: bytes, trunk: bytes, hops: Set[Hop]) -> None:
        """Undo the note that an id was sent to next hops: it has still to get there."""
        known = self._sent.get(message_id + trunk)
        if known is None:
            return
        left = tuple([hop for hop in known.sent if hop not in hops])
        if len(left) < len(known.sent):
            # The id stays known, so that a hit in its trail is not taken for a loop when it comes back.
            self._sent[message_id + trunk] = KnownId(known.since, known.link, left, is_owed=True)
            self._pairs -= len(known.sent) - len(left)
            self._pairs_by_link[known.link] -= len(known.sent) - len(left)

    def _forget_one(self, link: bytes) -> None:
        if self._pairs > MAX_SENDS:
            link = max(self._pairs_by_link, key=self._pairs_by_link.__getitem__)
        elif len(self._by_link.get(link, ())) * len(self._by_link) <= self._capacity:
            # It has no more than its share.
            link = max(self._by_link, key=lambda other: len(self._by_link[other]))
        beside = self._by_link[link]
        gone = self._sent.pop(beside.popleft())
        self._pairs -= len(gone.sent)
        self._pairs_by_link[link] -= len(gone.sent)
        if not beside:
            del self._by_link[link], self._pairs_by_link[link]
        self._complete_since = max(self._complete_since, gone.since)


class Router:
    """One relay's forwarding decisions: from a message and its previous hop to what is sent on."""

    def __init__(
        self, relay: RelayId, profile: Profile, leases: LeaseBook, memory: RecentIds, label: bytes
    ) -> None:
        """Begin with a first trail label (16 random bytes)."""
        self._relay = relay
        self._profile = profile
        self._leases = leases
        self._memory = memory
        self._labels: tuple[int, ...] = (label_bits(label),)
        # By the previous hop, too, all of it: how long its message takes tells none what others brought.
        self._passed: dict[tuple[bytes, bytes], _Passed] = {}  # with the trail
        self._found: dict[tuple[int, bytes, bytes], _Way] = {}  # with day and trunk
        self._found_at = 0  # by the changes of leases

    def use_label(self, label: bytes) -> None:
        """Take a fresh trail label (16 random bytes) for a new epoch; the last one is still recognised."""
        self._labels = (label_bits(label), *self._labels[:1])
        self._passed.clear()

    def route(
        self, message: Message, previous: bytes, now: float, only: Callable[[Hop], bool] | None = None
    ) -> ForwardingDecision:
        """Decide on a checked message that came from `previous` (a relay's key, or `ORIGIN`).

        Where `only` is given, other next hops count as none.
        A message with several tokens that does not come from `ORIGIN` is a detour: it enters a tree again, by
        all its tokens but the trunk. Raises `DecodeError` if the trail is forged, or so full that no next hop
        would accept it, which ends detours.
        """
        trunk = message.tokens[0]
        passed = self._passed.get((previous, message.trail)) or self._read(message.trail, previous)
        popcount = passed.popcount
        known = self._memory.entry(message.id, trunk)
        if passed.is_back and self._is_loop(known is not None, now):
            return ForwardingDecision(ForwardingOutcome.LOOP, popcount=popcount)
        if known is not None and not self._profile.edge_elements and not known.is_owed:
            # As published, a relay sends to all its next hops at once, so a second copy adds nothing.
            return ForwardingDecision(ForwardingOutcome.DUPLICATE, popcount=popcount)
        way = self._way(message, trunk, previous)
        found, boxes = way.hops, way.boxes
        if only is not None:
            found = tuple(filter(only, found))
            boxes = boxes_among(found)
        if not found:
            return ForwardingDecision(ForwardingOutcome.UNROUTED, popcount=popcount)
        hops = found
        if known is not None:
            sent = frozenset(known.sent)
            hops = tuple([hop for hop in found if hop not in sent])
        if not hops:
            # A detour that comes back to a relay it left must go on elsewhere: this relay's route was tried.
            outcome = (
                ForwardingOutcome.UNROUTED if _is_detour(message, previous) else ForwardingOutcome.DUPLICATE
            )
            return ForwardingDecision(outcome, popcount=popcount, boxes=boxes)
        if not passed.onward:
            raise DecodeError("a trail has no room for another relay")
        # Noted only now, and only for what is sent on: neither a forged trail nor a message without a route
        # may mark a true copy as sent, or evict other entries.
        self._memory.note(message.id, trunk, previous, now, hops)
        onward = Message(message.id, message.day, message.tokens[:1], passed.onward, message.body)
        return ForwardingDecision(
            ForwardingOutcome.FORWARDED,
            tuple([HopMessage(hop, onward) for hop in hops]),
            popcount,
            known is not None and previous == ORIGIN and known.is_owed,
            boxes,
        )

    def entry(self, message: Message) -> tuple[bytes, ...]:
        """Return the elements by which a drop enters the overlay here."""
        return tuple([element(self._profile, token, self._relay, ORIGIN) for token in message.tokens])

    def moved(self, message: Message, before: Hop, now: float) -> list[Hop]:
        """Return the new next hops of a message that waits for a next hop whose lease was given another one.

        They are noted as sent. Those that it was sent to before are among them: that may have been for other
        leases, before there was one for this. There it leads to none that has had it. A box here is one, too,
        where its owner has the lease as well, and has not had the message: the bypass token tells.
        """
        trunk = message.tokens[0]
        hops = self._leases.moved(message.day, before, trunk)
        if (table := self._leases.table(message.day)) is not None:
            leases = self._leases.followed(message.day, before, trunk, MAX_TOKENS)
            bypasses = [element(self._profile, lease.bypass, self._relay, ORIGIN) for lease in leases]
            sent = self._memory.sent(message.id, trunk)
            hops += [hop for hop in table.lookup_any(bypasses) if is_box(hop) and hop not in sent]
        if hops:  # as in `route`: a message that goes nowhere must not evict others
            self._memory.note(message.id, trunk, ORIGIN, now, hops)
        return hops

    def leads_to(self, message: Message, hop: Hop) -> bool:
        """Tell whether a lease sends messages with a message's trunk to a next hop now."""
        return bool(self._leases.followed(message.day, hop, message.tokens[0], 1))

    def beside(self, day: int, elements: Iterable[bytes]) -> list[Hop]:
        """Return the next hops to which any of these elements leads on a day."""
        table = self._leases.table(day)
        return [] if table is None else table.lookup_any(elements)

    def unsent(self, message: Message, hops: Iterable[Hop]) -> None:
        """Note that a message is not sent to next hops after all: it comes again, or goes another way."""
        self._memory.unsent(message.id, message.tokens[0], frozenset(hops))

    def _is_loop(self, known: bool, now: float) -> bool:
        if self._profile.trail_alone_drops:
            return True
        # Where the id is known, memory of (token, next hop) ends the loop and loses nothing.
        return not known and self._memory.may_have_forgotten(now)

    def _read(self, trail: bytes, previous: bytes) -> _Passed:
        """Read a trail, the first time that a previous hop brings it since the label is this one."""
        bits = trail_bits(trail)
        own, last = self._labels[0], self._labels[-1]
        onward = bits | own
        is_back = bits == onward or bits & last == last
        room = onward.bit_count() <= MAX_BITS_SET
        passed = _Passed(bits.bit_count(), is_back, trail_of(onward) if room else b"")
        if len(self._passed) >= MAX_TRAILS:
            self._passed.clear()
        self._passed[previous, trail] = passed
        return passed

    def _way(self, message: Message, trunk: bytes, previous: bytes) -> _Way:
        """Return the way on; along a tree, of the messages of one topic the first alone is looked up."""
        if previous == ORIGIN or (len(message.tokens) > 1 and self._profile.detours):
            return self._look_up(message, previous)
        if self._found_at != self._leases.changes:
            self._found_at = self._leases.changes
            self._found.clear()
        asked = message.day, trunk, previous
        if (way := self._found.get(asked)) is None:
            way = self._look_up(message, previous)
            if len(way.hops) < _WIDE:
                if len(self._found) >= MAX_FOUND:
                    self._found.clear()
                self._found[asked] = way
        return way

    def _look_up(self, message: Message, previous: bytes) -> _Way:
        """Return all next hops of a message, those it was sent to before included.

        Where it enters the overlay all its tokens are looked up; in a tree it follows the trunk alone.
        """
        asked = message.tokens
        if previous != ORIGIN:
            if len(asked) == 1 or not self._profile.detours:
                asked = asked[:1]
            else:
                asked, previous = asked[1:], ORIGIN
        found: dict[Hop, None] = {}
        if (table := self._leases.table(message.day)) is not None:
            for token in asked:
                found |= dict.fromkeys(table.lookup(element(self._profile, token, self._relay, previous)))
        return _Way(tuple(found), boxes_among(found))


def _is_detour(message: Message, previous: bytes) -> bool:
    return previous != ORIGIN and len(message.tokens) > 1
