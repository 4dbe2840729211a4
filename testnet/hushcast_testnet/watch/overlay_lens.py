"""The lens on one message: its way, and in plain words what each daemon on it saw and what it did not; pure.

Every sentence is derived from what the daemons noted. What a relay does not see is the threat model's ("What
each party sees" in docs/threat-model.md), told at the kind of relay that it is said of there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from hushcast_protocol.content.messages import HEADER, SEAL
from hushcast_protocol.content.payload_sizes import PADDED_SIZES
from hushcast_protocol.overlay.trail import BITS_A_LABEL
from hushcast_runtime.wording import counted, listed
from hushcast_testnet.watch.diagram import (
    MAILBOX,
    PUBLISHER,
    Arrow,
    Box,
    Diagram,
    TreePassage,
    levels_by_time,
)
from hushcast_testnet.watch.message_traces import MessageStep, TracedMessage

_SEALED = {HEADER + size + SEAL: size for size in PADDED_SIZES}
_SEALED_UP = "The topic's name, and the content."
_BEYOND = "Who subscribes, and how many: it knows its next hops and nothing behind them."
_TO_MAILBOX = "to a box, whose key is in no list"


@dataclass(frozen=True)
class OverlayWhereabouts:
    """Whose the keys in the traces are: the truth, which no relay has."""

    relays: Mapping[str, str]  # names of daemons by relays' keys
    owners: Mapping[str, str]  # names of daemons by mailboxes' keys

    def of(self, key: str) -> str:
        """Return the name for a key or a box, a key's beginning if it has none."""
        if key in self.relays.values():
            return key
        return self.relays.get(key) or self.owners.get(key) or f"{key[:8]}…"

    def box(self, key: str) -> str:
        """Return the box that a key is drawn as."""
        return self.relays.get(key, key)


def row(message: TracedMessage) -> dict[str, Any]:
    """Return a message's line in the list; `time` is seconds since the testnet began, `seconds` it took."""
    return {
        "id": message.id,
        "time": message.time,
        "topic": message.topic,
        "relays": len(message.relays),
        "inboxes": len(message.inboxes),
        "seconds": message.took,
        "fate": message.fate,
    }


def way(message: TracedMessage, names: OverlayWhereabouts) -> dict[str, Any]:
    """Return all that is shown of one message; times are seconds since the testnet began."""
    relays = [_Relay(name, message, names) for name in _in_order(message)]
    mailboxes = [_mailbox(message, names, key) for key in _mailboxes(message, names)]
    met = {relay.name for relay in relays} | {
        names.relays.get(step.other or "") for step in message.of("sent")
    }
    others = sorted(set(names.relays.values()) - met, key=natural)
    publisher = publishers_card(message, [_dropped_at(relays)])
    return {
        **row(message),
        "publisher": message.publisher,
        "summary": summary(message, f"{counted(len(relays), 'relay')} saw it"),
        "drawing": _drawing(message, names, relays).as_dict(),
        "stations": [publisher, *(relay.station() for relay in relays), *mailboxes],
        "others": others,
    }


class _Relay:
    """One relay on a message's way: what it noted."""

    def __init__(self, name: str, message: TracedMessage, names: OverlayWhereabouts) -> None:
        steps = [step for step in message.steps if step.daemon == name]
        self.name = name
        self.first = min(step.time for step in steps)
        self.drops = [step for step in message.of("drop") if step.daemon == name]
        self.received = [step for step in message.of("received") if step.daemon == name]
        self.sent = [step for step in message.of("sent") if step.daemon == name]
        self.to_mailboxes = [step for step in self.sent if step.other in names.owners]
        self._message = message
        self._names = names

    @property
    def kind(self) -> str:
        """Its box: `origin` before all, since there is the message's way in."""
        return "origin" if self.drops else "top" if self.to_mailboxes else "relay"

    def station(self) -> dict[str, Any]:
        """Return its card."""
        return {
            "id": self.name,
            "name": self.name,
            "kind": self.kind,
            "role": self._role(),
            "time": self.first,
            "saw": [self._came_from(), self._went_to(), *self._tokens(), *self._size(), *self._trail()],
            "hidden": self._hidden(),
            "note": self._note(),
        }

    def _role(self) -> str:
        if self.drops:
            if self.to_mailboxes:
                return "origin: here it entered the network, and next to a box"
            return "origin: here it entered the network"
        if self.to_mailboxes:
            return "last relay: next to a box"
        return "inner relay: between relays" if self.sent else "inner relay: it had nothing to pass on"

    def _came_from(self) -> str:
        relays = [self._names.of(step.other) for step in self.received if step.other]
        again = f" Again from {listed(dict.fromkeys(relays))}." if relays and self.drops else ""
        if self.drops:
            return f"It came from outside, over an anonymous connection: no name came with it.{again}"
        first, *more = dict.fromkeys(relays) or ["a relay that the traces do not name"]
        return f"It came from {first}{f', and again from {listed(more)}' if more else ''}."

    def _went_to(self) -> str:
        relays = list(dict.fromkeys(self._names.of(step.other or "") for step in self._to_relays()))
        ways = [f"to {listed(relays)}"] if relays else []
        if count := len({step.other for step in self.to_mailboxes}):
            ways.append(_TO_MAILBOX if count == 1 else f"to {count} boxes, whose keys are in no list")
        if ways:
            return f"It sent it on {', and '.join(ways)}."
        outcomes = {step.outcome for step in self.received}
        if "duplicate" in outcomes:
            return "It sent nothing on: it had the message already."
        if "loop" in outcomes:
            return "It sent nothing on: the trail says that the message was here before."
        if "unrouted" in outcomes:
            return "It has sent nothing on: no lease here fits the tokens."
        return "It has sent nothing on so far."

    def _to_relays(self) -> list[MessageStep]:
        return [step for step in self.sent if step.other not in self._names.owners]

    def _tokens(self) -> list[str]:
        steps = [*self.drops, *self.received]
        if not steps:
            return []
        count = max(step.tokens for step in steps)
        if count == 1:
            return [f"One token, {steps[0].trunk[:8]}…, which it cannot read: by it, it finds the next hop."]
        return [
            f"{count} tokens that it cannot read: {steps[0].trunk[:8]}… for the topic, the others for"
            " attributes or drawn at random."
        ]

    def _size(self) -> list[str]:
        sizes = [step.size for step in (*self.drops, *self.received) if step.size]
        if not sizes:
            return []
        if (padded := _SEALED.get(sizes[0])) is None:
            return [f"A sealed body of {sizes[0]:,} bytes."]
        return [f"A sealed body, padded to {padded // 1024} KiB: one of five sizes that there are."]

    def _trail(self) -> list[str]:
        bits = max((step.bits for step in self.received if step.other), default=0)
        if not bits:
            return []
        passed = max(1, round(bits / BITS_A_LABEL))
        return [f"A trail with {bits} bits set: {counted(passed, 'relay')} before it, as it can guess."]

    def _hidden(self) -> list[str]:
        publisher = (
            "Who published it, and at which other relays it was dropped."
            if self.drops
            else "Who published it: what it got came from a relay."
        )
        beyond = (
            "Whose box it is: its key stands in no list, and tells no daemon's name."
            if self.to_mailboxes
            else _BEYOND
        )
        return [_SEALED_UP, publisher, beyond]

    def _note(self) -> str:
        if self.name == self._message.publisher:
            return (
                "By chance its own daemon published the message: its owner knows that, no other relay does."
            )
        if self.name in self._message.inboxes:
            return "Its own daemon subscribes to the topic: its owner can read the message, a relay cannot."
        return ""


def _in_order(message: TracedMessage) -> list[str]:
    """Return the relays on the way, by when they first saw it."""
    first: dict[str, float] = {}
    for step in message.steps:
        if step.kind != "delivered":
            first[step.daemon] = min(step.time, first.get(step.daemon, step.time))
    return sorted(first, key=lambda name: (first[name], name))


def _mailboxes(message: TracedMessage, names: OverlayWhereabouts) -> list[str]:
    return list(
        dict.fromkeys(step.other for step in message.of("sent") if step.other and step.other in names.owners)
    )


def _mailbox(message: TracedMessage, names: OverlayWhereabouts, key: str) -> dict[str, Any]:
    owner = names.owners[key]
    tops = dict.fromkeys(step.daemon for step in message.of("sent") if step.other == key)
    came = _at_mailbox(message, owner)
    saw = [
        f"It came from {listed(tops)}, at the top of its tree."
        if len(tops) == 1
        else f"It came from {listed(tops)}, at the top of its tree; one copy is kept."
    ]
    saw.append("The topic and the content: it has the topic's key.")
    if came is None:
        saw = [f"It is on its way from {listed(tops)}."]
    elif owner not in message.inboxes:
        saw.append("Not kept: the subscription's condition does not fit.")
    return {
        "id": key,
        "name": owner,
        "kind": "mailbox",
        "role": "subscriber: the message came to its box",
        "time": came,
        "saw": saw,
        "hidden": [
            "Who published it, unless the author signed it.",
            f"By which relays it came to {listed(tops)}.",
            "Who else subscribes.",
        ],
        "note": "",
    }


def _at_mailbox(message: TracedMessage, owner: str) -> float | None:
    times = [step.time for step in message.of("delivered") if step.daemon == owner]
    times += [message.inboxes[owner]] if owner in message.inboxes else []
    return min(times, default=None)


def publishers_card(message: TracedMessage, ways: list[str]) -> dict[str, Any]:
    """Return the publisher's card; `ways` says whom it handed the message to."""
    return {
        "id": PUBLISHER,
        "name": message.publisher or "not yet known",
        "kind": "publisher",
        "role": "publisher: it wrote the message",
        "time": None,
        "saw": ["The topic and the content: it sealed them.", *ways],
        "hidden": [
            "Whether anybody subscribes, and who.",
            "Where the message went from there.",
        ],
        "note": "",
    }


def subscribers_card(message: TracedMessage, name: str, came: str) -> dict[str, Any]:
    """Return the card of a subscriber whose inbox has the message; `came` says from whom it has it."""
    return {
        "id": name,
        "name": name,
        "kind": "mailbox",
        "role": "subscriber: the message came to it",
        "time": message.inboxes[name],
        "saw": [f"It came from {came}.", "The topic and the content: it has the topic's key."],
        "hidden": ["Who published it, unless the author signed it.", "Who else subscribes."],
        "note": "It published the message itself." if name == message.publisher else "",
    }


def _dropped_at(relays: list[_Relay]) -> str:
    origins = [relay.name for relay in relays if relay.drops]
    return f"The relays that it dropped the message at, drawn at random: {listed(origins) or 'none noted'}."


def summary(message: TracedMessage, passed: str) -> str:
    """Return a sentence or two on a message; `passed` says who saw it between publisher and subscribers."""
    if message.topic is None:
        return f"A probe: nobody calls it a message. {passed}."
    source = message.publisher or "A daemon that has not said so yet"
    got = listed(sorted(message.inboxes, key=natural))
    text = f"{source} published it on “{message.topic}”. {passed}"
    if not got:
        return f"{text}; {message.fate or 'it is in no inbox so far'}."
    return f"{text}; {got} got it, within {_duration(message.took or 0.0)}."


def passage(message: TracedMessage, names: OverlayWhereabouts, mailbox: str) -> TreePassage:
    """Return what of a message's way lies in the tree of a mailbox."""
    noted = [step for step in message.steps if step.kind != "delivered"]
    first = {step.daemon: step.time for step in sorted(noted, key=attrgetter("time"), reverse=True)}
    notes = {name: after(message, time) for name, time in first.items()}
    came = _at_mailbox(message, names.owners.get(mailbox, ""))
    if came is not None:
        notes[MAILBOX] = after(message, came)
    hops = {
        (step.daemon, MAILBOX if step.other == mailbox else names.box(step.other or ""))
        for step in message.of("sent")
    }
    return TreePassage(message.publisher, [step.daemon for step in message.of("drop")], hops, notes)


def _duration(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def _drawing(message: TracedMessage, names: OverlayWhereabouts, relays: list[_Relay]) -> Diagram:
    arrows = _arrows(message, names)
    depth = levels_by_time({relay.name: relay.first for relay in relays}, arrows)
    boxes = {
        relay.name: Box(relay.name, relay.name, relay.kind, after(message, relay.first)) for relay in relays
    }
    for arrow in arrows:  # a relay that was sent it, and has noted nothing
        if arrow.end not in boxes and arrow.end not in names.owners:
            boxes[arrow.end] = Box(arrow.end, names.of(arrow.end), "aside", "no sign yet")
            depth[arrow.end] = depth[arrow.start] + 1
    levels: list[list[Box]] = [[Box(PUBLISHER, message.publisher or "?", "publisher", "publisher")]]
    levels += [[] for _ in range(1 + max(depth.values(), default=-1))]
    for name, box in boxes.items():
        levels[1 + depth[name]].append(box)
    mailboxes = []
    for key in _mailboxes(message, names):
        came = _at_mailbox(message, names.owners[key])
        note = "on its way" if came is None else after(message, came)
        mailboxes.append(Box(key, names.owners[key], "mailbox", note))
    origins = [Arrow(PUBLISHER, relay.name, "dropped") for relay in relays if relay.drops]
    return Diagram([*levels, mailboxes] if mailboxes else levels, [*origins, *arrows])


def after(message: TracedMessage, time: float) -> str:
    """Return how long after a message's first sign something was, in words."""
    return f"+{_duration(max(0.0, time - message.time))}"


def _arrows(message: TracedMessage, names: OverlayWhereabouts) -> list[Arrow]:
    outcomes: dict[tuple[str, str], str] = {}
    for step in message.of("received"):
        if step.other:
            outcomes.setdefault((names.box(step.other), step.daemon), step.outcome or "")
    arrows: dict[tuple[str, str], Arrow] = {}
    for step in message.of("sent"):
        start, end = step.daemon, names.box(step.other or "")
        if end in names.owners:
            has_come = _at_mailbox(message, names.owners[end]) is not None
        else:
            has_come = (start, end) in outcomes
        kind = "unseen" if not has_come else "again" if outcomes.get((start, end)) == "duplicate" else "sent"
        arrows.setdefault((start, end), Arrow(start, end, kind))
    return list(arrows.values())


def natural(name: str) -> tuple[str, int]:
    """Order names by their number: relay-2 before relay-10."""
    word, _, number = name.rpartition("-")
    return word, int(number) if number.isdigit() else 0
