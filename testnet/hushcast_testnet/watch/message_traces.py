"""The messages of late, each with its steps from daemon to daemon, told apart from probes; pure.

Relays cannot tell a probe from a message, so neither can what they observe. The truth beside it can:
publishers and inboxes name messages, nobody names probes. An id that nobody has named counts as a probe.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple

MESSAGES_KEPT = 500  # messages that can be looked at, the newest
UNNAMED_KEPT = 1_000  # ids of which nobody said yet that they are messages: probes, in the main
STEPS_KEPT = 300  # steps of one message: its way along the trees of dozens of subscribers


class MessageStep(NamedTuple):
    """One line of a daemon's observations about one message."""

    time: float  # seconds since the testnet began
    daemon: str
    kind: str  # `drop`, `received`, `sent` or `delivered`; of the central system `handed` or `dispatched`
    other: str | None  # key of what was received's previous hop, of what was sent's next hop; or a pseudonym
    outcome: str | None
    tokens: int
    trunk: str  # the first token
    size: int  # bytes of the sealed body; 0 where the line does not say
    bits: int  # set in the trail as received


@dataclass
class TracedMessage:
    """What the traces tell of one message so far."""

    id: str
    time: float  # seconds since the testnet began, of its first sign
    steps: list[MessageStep] = field(default_factory=list)
    topic: str | None = None
    publisher: str | None = None  # the daemon's name, once it has told
    inboxes: dict[str, float] = field(default_factory=dict)  # by daemon: when it was put there
    fate: str = ""  # what became of it where it is in no inbox

    def of(self, kind: str) -> list[MessageStep]:
        """Return the steps of one kind, the earliest first."""
        return sorted((step for step in self.steps if step.kind == kind), key=attrgetter("time"))

    @property
    def relays(self) -> set[str]:
        """The daemons that it passed, mailboxes apart."""
        return {step.daemon for step in self.steps if step.kind != "delivered"}

    @property
    def took(self) -> float | None:
        """Seconds from its first sign until the last inbox so far had it; `None` if none has."""
        return max(0.0, max(self.inboxes.values()) - self.time) if self.inboxes else None

    def _add(self, step: MessageStep) -> None:
        self.time = min(self.time, step.time)
        if len(self.steps) < STEPS_KEPT:
            self.steps.append(step)


class TracedMessages:
    """The messages of late, and the ids that may still turn out to be some."""

    def __init__(self) -> None:
        self._named: OrderedDict[str, TracedMessage] = OrderedDict()
        self._unnamed: OrderedDict[str, TracedMessage] = OrderedDict()

    def observe(self, step: MessageStep, message: str) -> list[MessageStep]:
        """Take in a step of an id; return it if the id is known to be a message's, else nothing."""
        if (named := self._named.get(message)) is not None:
            named._add(step)
            return [step]
        held = self._unnamed.setdefault(message, TracedMessage(message, step.time))
        held._add(step)
        if len(self._unnamed) > UNNAMED_KEPT:
            self._unnamed.popitem(last=False)
        return []

    def merge(self, outer: str, inside: str) -> list[MessageStep]:
        """Take the steps of an id for those of another; return those that turn out to be a message's."""
        held = self._unnamed.pop(outer, None)
        return [found for step in (held.steps if held else ()) for found in self.observe(step, inside)]

    def publish(self, daemon: str, record: dict[str, Any]) -> list[MessageStep]:
        """Take in a publisher's word; return the steps that turn out to be a message's."""
        message, steps = self._name(record)
        message.publisher = daemon
        return steps

    def deliver(self, daemon: str, record: dict[str, Any]) -> list[MessageStep]:
        """Take in that a message is in a daemon's inbox; return the steps that turn out to be a message's."""
        message, steps = self._name(record)
        message.inboxes.setdefault(daemon, record["time"])
        return steps

    def _name(self, record: dict[str, Any]) -> tuple[TracedMessage, list[MessageStep]]:
        known = str(record["message"])
        if (message := self._named.get(known)) is not None:
            return message, []
        message = self._unnamed.pop(known, None) or TracedMessage(known, record["time"])
        message.topic = record["topic"]
        self._named[known] = message
        if len(self._named) > MESSAGES_KEPT:
            self._named.popitem(last=False)
        return message, message.steps[:]

    def __getitem__(self, message: str) -> TracedMessage | None:
        """Return a message, or a probe, by its id."""
        return self._named.get(message) or self._unnamed.get(message)

    def newest_first(self) -> list[TracedMessage]:
        """Return the messages that are kept."""
        return sorted(self._named.values(), key=attrgetter("time"), reverse=True)

    def probes_newest_first(self) -> list[TracedMessage]:
        """Return what is kept that nobody has called a message so far."""
        return sorted(self._unnamed.values(), key=attrgetter("time"), reverse=True)
