"""The forwarding decision: which message goes to which next hops, each once (design "Forward")."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable
from enum import Enum
from itertools import chain

import msgspec

from hushcast_protocol.errors import DecodeError
from hushcast_protocol.hops import Hop
from hushcast_protocol.leases import LeaseBook
from hushcast_protocol.messages import Message
from hushcast_protocol.profile import Profile
from hushcast_protocol.tokens import ORIGIN, element
from hushcast_protocol.trail import MAX_BITS_SET, Trail
from hushcast_protocol.wire import RelayId

MAX_IDS = 32_768  # messages remembered; about 10 MB, and five minutes at 100 messages a second
MAX_SENDS = 500_000  # (token, next hop) pairs of all of them; 50 MB, however few the messages
MAX_TOKENS_SHARED = 4096  # tokens held once for all ids; beyond, some are held twice for a while
CIRCULATION = 600.0  # seconds within which a message can come back to a relay: links retry, relays restart


class Outcome(Enum):
    """What became of a message at this relay."""

    FORWARDED = "forwarded"
    DUPLICATE = "duplicate"  # all that it asks for was sent before
    UNROUTED = "unrouted"  # no next hop: this relay is no seat of a tree for it, or nobody subscribes
    LOOP = "loop"  # its trail says that it was here, and memory cannot say otherwise


class Send(msgspec.Struct, frozen=True, gc=False):
    """A message for one next hop."""

    hop: Hop
    message: Message


class Decision(msgspec.Struct, frozen=True, gc=False):
    """What to do with a message."""

    outcome: Outcome
    sends: tuple[Send, ...] = ()
    popcount: int = 0  # of the trail as it came


class _Known(msgspec.Struct, frozen=True, gc=False):
    """What is remembered of one id: since when, and sent where: token, next hop, token, next hop, …

    One flat tuple: a set for each of many thousand ids takes three times the memory.
    """

    since: float
    sent: tuple[bytes, ...] = ()


class RecentIds:
    """Exact memory of what was sent where.

    When it is full, the oldest id is forgotten of the previous hop that brought the most: whoever floods
    pushes out nothing but its own.
    """

    def __init__(self, now: float, capacity: int = MAX_IDS) -> None:
        self._capacity = capacity
        self._complete_since = now
        self._sent: dict[bytes, _Known] = {}
        self._by_link: dict[bytes, deque[bytes]] = {}  # ids by the previous hop that brought them first
        self._tokens: dict[bytes, bytes] = {}  # each once, however many ids were sent by it
        self._pairs = 0

    def __len__(self) -> int:
        """Return the number of ids remembered."""
        return len(self._sent)

    def __contains__(self, message_id: bytes) -> bool:
        return message_id in self._sent

    def may_have_forgotten(self, now: float) -> bool:
        """Tell whether an unknown id may yet have been here: after a restart, or when memory is full."""
        return now - self._complete_since < CIRCULATION

    def sent(self, message_id: bytes) -> Collection[tuple[bytes, bytes]]:
        """Return the (token, next hop) pairs that an id was sent to."""
        known = self._sent.get(message_id)
        return set(zip(known.sent[::2], known.sent[1::2], strict=True)) if known is not None else frozenset()

    def note(self, message_id: bytes, link: bytes, now: float, pairs: Iterable[tuple[bytes, Hop]]) -> None:
        """Remember that an id, brought by the previous hop `link`, was sent to (token, next hop) pairs."""
        known = self._sent.get(message_id)
        if known is None:
            known = _Known(now)
            self._by_link.setdefault(link, deque()).append(message_id)
        new: dict[tuple[bytes, bytes], None] = dict.fromkeys(
            [(self._same(token), hop) for token, hop in pairs]
        )
        for pair in self.sent(message_id):
            new.pop(pair, None)
        self._sent[message_id] = _Known(known.since, (*known.sent, *chain.from_iterable(new)))
        self._pairs += len(new)
        while len(self._sent) > self._capacity or self._pairs > MAX_SENDS:
            self._forget_one(link)

    def _same(self, token: bytes) -> bytes:
        if len(self._tokens) >= MAX_TOKENS_SHARED:
            self._tokens.clear()
        return self._tokens.setdefault(token, token)

    def _forget_one(self, link: bytes) -> None:
        held = self._by_link.get(link, ())
        if len(held) * len(self._by_link) <= self._capacity and self._pairs <= MAX_SENDS:
            # It has no more than its share.
            link = max(self._by_link, key=lambda other: len(self._by_link[other]))
        elif not held:
            link = next(iter(self._by_link))
        oldest = self._by_link[link].popleft()
        if not self._by_link[link]:
            del self._by_link[link]
        gone = self._sent.pop(oldest)
        self._pairs -= len(gone.sent) // 2
        self._complete_since = max(self._complete_since, gone.since)


class Router:
    """One relay's decisions: from a message and where it came from to what is sent on."""

    def __init__(
        self, relay: RelayId, profile: Profile, leases: LeaseBook, memory: RecentIds, label: bytes
    ) -> None:
        """Begin with a first trail label (16 random bytes)."""
        self._relay = relay
        self._profile = profile
        self._leases = leases
        self._memory = memory
        self._labels: tuple[bytes, ...] = (label,)

    def use_label(self, label: bytes) -> None:
        """Take a fresh trail label (16 random bytes) for a new epoch; the last one is still recognised."""
        self._labels = (label, *self._labels[:1])

    def route(self, message: Message, previous: bytes, now: float) -> Decision:
        """Decide on a checked message that came from `previous` (a relay's key, or `ORIGIN`).

        One with several tokens that does not come from `ORIGIN` is a detour: it enters a tree again, by all
        its tokens but the trunk. Raises `DecodeError` if the trail is forged, or so full that no next hop
        would take it: so detours end.
        """
        trail = Trail(message.trail)
        popcount = trail.popcount()
        known = message.id in self._memory
        if any(map(trail.__contains__, self._labels)) and self._is_loop(known, now):
            return Decision(Outcome.LOOP, popcount=popcount)
        if known and not self._profile.edge_elements:
            # As published a relay sends to all its next hops at once, so a second copy brings nothing new.
            return Decision(Outcome.DUPLICATE, popcount=popcount)
        trunk = message.tokens[0]
        found = self._next_hops(message, previous)
        if not found:
            return Decision(Outcome.UNROUTED, popcount=popcount)
        sent = self._memory.sent(message.id)
        hops = [hop for hop in found if (trunk, hop) not in sent] if sent else found
        if not hops:
            # A detour that comes back to a relay it left must go on elsewhere: this one's way was tried.
            outcome = Outcome.UNROUTED if _is_detour(message, previous) else Outcome.DUPLICATE
            return Decision(outcome, popcount=popcount)
        trail.add(self._labels[0])
        if trail.popcount() > MAX_BITS_SET:
            raise DecodeError("a trail has no room for another relay")
        # Only now, and only what is sent on: neither a forged trail nor a message without a route may make
        # the memory hold a true copy for sent, or push out others.
        self._memory.note(message.id, previous, now, [(trunk, hop) for hop in hops])
        onward = Message(message.id, message.day, (trunk,), trail.to_bytes(), message.body)
        return Decision(Outcome.FORWARDED, tuple([Send(hop, onward) for hop in hops]), popcount)

    def moved(self, message: Message, before: Hop, now: float) -> list[Hop]:
        """Return where a message goes that waits for a next hop, now that its lease has another one.

        Nothing goes where it was sent before; that it is sent there now is remembered.
        """
        trunk = message.tokens[0]
        sent = self._memory.sent(message.id)
        hops = [hop for hop in self._leases.moved(message.day, before, trunk) if (trunk, hop) not in sent]
        if hops:  # as in `route`: what goes nowhere must not push out others
            self._memory.note(message.id, ORIGIN, now, [(trunk, hop) for hop in hops])
        return hops

    def _is_loop(self, known: bool, now: float) -> bool:
        if self._profile.trail_alone_drops:
            return True
        # Where the id is known, memory of (token, next hop) ends the loop and loses nothing.
        return not known and self._memory.may_have_forgotten(now)

    def _next_hops(self, message: Message, previous: bytes) -> list[Hop]:
        """Return all next hops of a message, those it was sent to before included.

        Where it enters the overlay all its tokens are looked up; in a tree it follows the trunk alone.
        """
        table = self._leases.table(message.day)
        if table is None:
            return []
        asked = message.tokens
        if self._profile.detours and _is_detour(message, previous):
            asked, previous = asked[1:], ORIGIN
        elif previous != ORIGIN:
            asked = asked[:1]
        found: dict[Hop, None] = {}
        for token in asked:
            for hop in table.lookup(element(self._profile, token, self._relay, previous)):
                found[hop] = None
        return list(found)


def _is_detour(message: Message, previous: bytes) -> bool:
    return previous != ORIGIN and len(message.tokens) > 1
