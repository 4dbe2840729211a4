"""The forwarding decision: which message goes to which next hops, each once (design "Forward")."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from hushcast_protocol.errors import DecodeError
from hushcast_protocol.hops import Hop
from hushcast_protocol.leases import LeaseBook
from hushcast_protocol.messages import Message
from hushcast_protocol.profile import Profile
from hushcast_protocol.tokens import ORIGIN, element
from hushcast_protocol.trail import MAX_BITS_SET, Trail
from hushcast_protocol.wire import RelayId

MAX_IDS = 32_768  # messages remembered; about 12 MB, and five minutes at 100 messages a second
MAX_SENDS = 500_000  # (token, next hop) pairs of all of them; 50 MB, however few the messages
CIRCULATION = 600.0  # seconds within which a message can come back to a relay: links retry, relays restart


class Outcome(Enum):
    """What became of a message at this relay."""

    FORWARDED = "forwarded"
    DUPLICATE = "duplicate"  # all that it asks for was sent before
    UNROUTED = "unrouted"  # no next hop: this relay is no seat of a tree for it, or nobody subscribes
    LOOP = "loop"  # its trail says that it was here, and memory cannot say otherwise


class Send(NamedTuple):
    """A message for one next hop."""

    hop: Hop
    message: Message


class Decision(NamedTuple):
    """What to do with a message."""

    outcome: Outcome
    sends: tuple[Send, ...] = ()
    popcount: int = 0  # of the trail as it came


class RecentIds:
    """Exact memory of what was sent where; the oldest ids are forgotten when it is full."""

    def __init__(self, now: float, capacity: int = MAX_IDS) -> None:
        self._capacity = capacity
        self._complete_since = now
        self._sent: OrderedDict[bytes, tuple[float, set[tuple[bytes, Hop]]]] = OrderedDict()
        self._pairs = 0

    def __len__(self) -> int:
        """Return the number of ids remembered."""
        return len(self._sent)

    def __contains__(self, message_id: bytes) -> bool:
        return message_id in self._sent

    def may_have_forgotten(self, now: float) -> bool:
        """Tell whether an unknown id may yet have been here: after a restart, or when memory is full."""
        return now - self._complete_since < CIRCULATION

    def sent(self, message_id: bytes) -> frozenset[tuple[bytes, Hop]] | set[tuple[bytes, Hop]]:
        """Return the (token, next hop) pairs that an id was sent to."""
        known = self._sent.get(message_id)
        return known[1] if known is not None else frozenset()

    def note(self, message_id: bytes, now: float, pairs: Iterable[tuple[bytes, Hop]]) -> None:
        """Remember that an id was sent to these (token, next hop) pairs."""
        _, known = self._sent.setdefault(message_id, (now, set()))
        before = len(known)
        known.update(pairs)
        self._pairs += len(known) - before
        while len(self._sent) > self._capacity or self._pairs > MAX_SENDS:
            _, (seen, gone) = self._sent.popitem(last=False)
            self._pairs -= len(gone)
            self._complete_since = max(self._complete_since, seen)


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

        Raises `DecodeError` if the trail is forged, or so full that no next hop would take it.
        """
        trail = Trail(message.trail)
        popcount = trail.popcount()
        known = message.id in self._memory
        if any(label in trail for label in self._labels) and self._is_loop(known, now):
            return Decision(Outcome.LOOP, popcount=popcount)
        if known and not self._profile.edge_elements:
            # As published a relay sends to all its next hops at once, so a second copy brings nothing new.
            return Decision(Outcome.DUPLICATE, popcount=popcount)
        trunk = message.tokens[0]
        hops = self._fresh_hops(message, previous)
        if not hops:
            outcome = Outcome.DUPLICATE if known else Outcome.UNROUTED
            return Decision(outcome, popcount=popcount)
        trail.add(self._labels[0])
        if trail.popcount() > MAX_BITS_SET:
            raise DecodeError("a trail has no room for another relay")
        # Only now, and only what is sent on: neither a forged trail nor a message without a route may make
        # the memory hold a true copy for sent, or push out others.
        self._memory.note(message.id, now, ((trunk, hop) for hop in hops))
        onward = Message(message.id, message.day, (trunk,), trail.to_bytes(), message.body)
        return Decision(Outcome.FORWARDED, tuple(Send(hop, onward) for hop in hops), popcount)

    def _is_loop(self, known: bool, now: float) -> bool:
        if self._profile.trail_alone_drops:
            return True
        # Where the id is known, memory of (token, next hop) ends the loop and loses nothing.
        return not known and self._memory.may_have_forgotten(now)

    def _fresh_hops(self, message: Message, previous: bytes) -> list[Hop]:
        """Return the next hops that this message was not yet sent to.

        Where it enters the overlay all its tokens are looked up; in a tree it follows the trunk alone.
        """
        table = self._leases.table(message.day)
        if table is None:
            return []
        trunk = message.tokens[0]
        sent = self._memory.sent(message.id)
        asked = message.tokens if previous == ORIGIN else (trunk,)
        found: dict[Hop, None] = {}
        for token in asked:
            for hop in table.lookup(element(self._profile, token, self._relay, previous)):
                if (trunk, hop) not in sent:
                    found[hop] = None
        return list(found)
