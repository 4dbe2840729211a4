"""The lens on one message over brokers: its way, and what each broker saw of it; pure.

Every sentence is derived from what they noted. What each does not see is the threat model's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hushcast_runtime.wording import counted, listed
from hushcast_testnet.watch.diagram import PUBLISHER, Arrow, Box, Diagram
from hushcast_testnet.watch.message_traces import TracedMessage
from hushcast_testnet.watch.overlay_lens import (
    after,
    natural,
    publishers_card,
    row,
    subscribers_card,
    summary,
)

KINDS = {"root": "origin", "inner": "relay", "edge": "top"}
"""The boxes of brokers, from the root down."""
_ROLES = {
    "root": "root: here it entered the network",
    "inner": "inner broker: between the root and edge brokers",
    "edge": "edge broker: next to the subscribers",
}
TOKENS_A_LABEL = 3
_BODY = "The topic's name, and the content: the body opens with the topic's name or link alone."


@dataclass
class BrokerWhereabouts:
    """Who is who: the truth, which brokers have of each other alone."""

    brokers: dict[str, str]  # names by keys
    clients: dict[str, str]  # names of daemons by their keys at edge brokers
    privacy: str = "clear"
    """What brokers learn, as the network's profile says it."""

    @property
    def has_layers(self) -> bool:
        """Whether brokers route by items under layers, not by filters."""
        return self.privacy.startswith("full")

    def of(self, key: str | None) -> str:
        """Return the name for a key."""
        key = key or ""
        return self.brokers.get(key) or self.clients.get(key) or "a client"


def role_of(name: str) -> str:
    """Return a broker's role, which a testnet names it by."""
    return name.partition("-")[0]


def way(message: TracedMessage, places: BrokerWhereabouts) -> dict[str, Any]:
    """Return all that is shown of one message; times are seconds since the testnet began."""
    passed = [_Broker(name, message, places) for name in _in_order(message, places)]
    inboxes = [_inbox(message, passed, name) for name in sorted(message.inboxes, key=natural)]
    ways = ["It handed it to the root, over a circuit of its own and under no name."]
    met = {one.name for one in passed}
    return {
        **row(message),
        "publisher": message.publisher,
        "summary": summary(message, f"{counted(len(passed), 'broker')} passed it on"),
        "drawing": _drawing(message, passed).as_dict(),
        "stations": [publishers_card(message, ways), *(one.card() for one in passed), *inboxes],
        "others": sorted(set(places.brokers.values()) - met, key=natural),
    }


class _Broker:
    """One broker on a message's way: what it noted."""

    def __init__(self, name: str, message: TracedMessage, places: BrokerWhereabouts) -> None:
        steps = [step for step in message.steps if step.daemon == name]
        self.name = name
        self.role = role_of(name)
        self.has_layers = places.has_layers
        self.is_sealed = places.privacy in ("community", "group")
        self.first = min(step.time for step in steps)
        self.came = [step for step in steps if step.kind in ("drop", "received")]
        self.sent = sorted({places.of(step.other) for step in steps if step.kind == "sent"}, key=natural)
        self.above = sorted({places.of(step.other) for step in self.came if step.kind == "received"})

    def card(self) -> dict[str, Any]:
        """Return what it saw, and what it did not."""
        return {
            "id": self.name,
            "name": self.name,
            "kind": KINDS[self.role],
            "role": _ROLES[self.role],
            "time": self.first,
            "saw": [self._came_from(), *self._words(), self._went_to()],
            "hidden": [_BODY, "Who published it.", self._beyond()],
            "note": "",
        }

    def _came_from(self) -> str:
        if self.role == "root":
            return "It came over an anonymous connection: no name."
        return f"It came from {listed(self.above) or 'the broker above'}."

    def _words(self) -> list[str]:
        found = [step for step in self.came if step.trunk]
        if not found:
            return []
        step = found[0]
        body = f"A sealed body of {step.size:,} bytes, one of five sizes."
        if self.is_sealed:
            words = "sealed to a community, whose members alone read them and the filters that they meet"
            return [f"The words that it matches, {words}.", body]
        if not self.has_layers:
            rest = counted(step.tokens - 1, "attribute")
            values = f", and {rest}: numbers as they are, labels as hashes" if step.tokens > 1 else ""
            return [f"The words that it matches: {step.trunk[:8]}… for the topic{values}.", body]
        if self.role == "root":
            return [f"Names of {counted(step.tokens, 'word')}: who guesses an open topic knows them.", body]
        labels = counted(step.tokens // TOKENS_A_LABEL, "label")
        return [f"{labels}: names of items that it showed above, and what opens the body, sealed.", body]

    def _went_to(self) -> str:
        if not self.sent:
            return "It met nothing that is asked for here: it went nowhere."
        if self.role == "edge":
            count = counted(len(self.sent), "client")
            return f"It met what {count} asked for, each known by a key made for this edge broker alone."
        what = "items under layers" if self.has_layers else "filters"
        return f"It met {what} that {listed(self.sent)} showed: it sent it on there, once each."

    def _beyond(self) -> str:
        if self.role == "edge":
            return "Who its clients are: they come over anonymous connections."
        if self.has_layers and self.role != "root":
            return "Who subscribes, how many, and to what: where many below want the same, one item came up."
        return "Who subscribes, and how many: filters are shown for nobody in particular."


def _in_order(message: TracedMessage, places: BrokerWhereabouts) -> list[str]:
    """Return the brokers on the way, from the root down."""
    first: dict[str, float] = {}
    for step in message.steps:
        if step.daemon in places.brokers.values():
            first[step.daemon] = min(step.time, first.get(step.daemon, step.time))
    ranks = list(KINDS)
    return sorted(first, key=lambda name: (ranks.index(role_of(name)), first[name], name))


def _inbox(message: TracedMessage, passed: list[_Broker], name: str) -> dict[str, Any]:
    edges = listed(one.name for one in passed if name in one.sent)
    came = f"{edges or 'its edge broker'}, over a link that it keeps there"
    return subscribers_card(message, name, came)


def _drawing(message: TracedMessage, passed: list[_Broker]) -> Diagram:
    levels = [[Box(PUBLISHER, message.publisher or "?", "publisher", "publisher")]]
    levels += [
        [Box(one.name, one.name, kind, after(message, one.first)) for one in passed if one.role == role]
        for role, kind in KINDS.items()
    ]
    inboxes = sorted(message.inboxes, key=natural)
    levels.append([Box(name, name, "mailbox", after(message, message.inboxes[name])) for name in inboxes])
    known = {one.name for one in passed} | set(inboxes)
    arrows = [Arrow(PUBLISHER, one.name, "dropped") for one in passed if one.role == "root"]
    arrows += [Arrow(one.name, end, "sent") for one in passed for end in one.sent if end in known]
    return Diagram([level for level in levels if level], arrows)
