"""The picture of a testnet, folded from the lines of its traces; pure."""

from __future__ import annotations

import statistics
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from hushcast_testnet.watch.diagram import Diagram, tree_drawing
from hushcast_testnet.watch.history import History
from hushcast_testnet.watch.message_traces import MessageStep, TracedMessage, TracedMessages
from hushcast_testnet.watch.overlay_lens import OverlayWhereabouts, passage, row, way
from hushcast_testnet.watch.topic_listeners import WAITED_FOR, TopicListeners

MESSAGES_LISTED = 50  # on the page: what a person may scroll through
PROBES_LISTED = 20  # among them, where they are asked for: there are many times as many as messages
MAILBOXES_KEPT = 1_000  # owners of mailboxes, of ended subscriptions too: messages may still come to them
DELAYS_KEPT = 200  # deliveries of which the median is told
MOVES_KEPT = 500  # hops not yet shown


@dataclass
class _Subscription:
    topic: str
    owner: str
    trees: dict[int, dict[str, str | None]] = field(default_factory=dict)  # by day


class OverlayPicture:
    """The state folded from all traces so far."""

    def __init__(self) -> None:
        self._relays: dict[str, str] = {}  # names by keys
        self._subscriptions: dict[str, _Subscription] = {}  # by their mailboxes' keys
        self._owners: dict[str, str] = {}  # by mailboxes' keys, those of ended subscriptions among them
        self._listeners = TopicListeners()
        self._latest = 0.0  # seconds since the testnet began, of the newest line
        self._messages = TracedMessages()
        self._history = History()
        self._delays: deque[float] = deque(maxlen=DELAYS_KEPT)
        self._moves: deque[tuple[float, str, str]] = deque(maxlen=MOVES_KEPT)
        self._counts: Counter[str] = Counter()
        self._sent: Counter[str] = Counter()
        self._sent_messages: Counter[str] = Counter()

    def take(self, name: str, record: dict[str, Any]) -> None:
        """Take in one line of the daemon `name`'s traces; whatever the picture has no place for passes by."""
        self._latest = max(self._latest, record.get("time", 0.0))
        match record.get("kind"):
            case "started" if record["role"] == "relay":
                self._relays[record["node"]] = name
            case "subscribed":
                self._subscriptions[record["mailbox"]] = _Subscription(record["topic"], name)
                self._owners[record["mailbox"]] = name
                self._listeners.begin(record["mailbox"], record["topic"], record["time"])
                if len(self._owners) > MAILBOXES_KEPT:
                    del self._owners[next(iter(self._owners))]
            case "unsubscribed":
                self._subscriptions.pop(record["mailbox"], None)
                self._listeners.end(record["mailbox"], record["time"])
            case "installed" if "tree" in record and record["mailbox"] in self._subscriptions:
                trees = self._subscriptions[record["mailbox"]].trees
                trees[record["day"]] = record["tree"]
                trees.pop(record["day"] - 2, None)
            case "published" if record.get("origins"):
                self._published(name, record)
            case "delivered" if "topic" in record:  # the truth; what was observed stands beside it
                self._delivered(name, record)
            case "drop" | "received" | "sent" | "delivered" as kind:
                self._observed(name, kind, record)

    def _published(self, name: str, record: dict[str, Any]) -> None:
        known = self._messages[record["message"]]
        if known is not None and known.publisher is not None:  # told again after a restart
            return
        self._counts["published"] += 1
        self._learn(self._messages.publish(name, record))
        if (message := self._messages[record["message"]]) is not None:
            self._history.add("messages", message.time)

    def _delivered(self, name: str, record: dict[str, Any]) -> None:
        self._counts["delivered"] += 1
        self._learn(self._messages.deliver(name, record))
        if (message := self._messages[record["message"]]) is not None:
            self._delays.append(max(0.0, record["time"] - message.time))

    def _observed(self, name: str, kind: str, record: dict[str, Any]) -> None:
        if kind == "sent":
            self._counts["sent"] += 1
            self._sent[name] += 1
            self._history.add("sent", record["time"])
        tokens = record.get("tokens") or ("",)
        step = MessageStep(
            record["time"],
            name,
            kind,
            record.get("previous") or record.get("next"),
            record.get("outcome"),
            len(tokens),
            tokens[0],
            record.get("size", 0),
            record.get("popcount", 0),
        )
        self._learn(self._messages.observe(step, record["message"]))

    def _learn(self, steps: Iterable[MessageStep]) -> None:
        """Take in steps that turn out to be a message's."""
        for step in steps:
            if step.kind == "drop":
                self._moves.append((step.time, "", step.daemon))
            elif step.kind == "sent":
                self._counts["transmissions"] += 1
                self._sent_messages[step.daemon] += 1
                self._history.add("hops", step.time)
                self._moves.append((step.time, step.daemon, step.other or ""))

    def subscriptions(self) -> list[dict[str, Any]]:
        """Return every subscription: `id`, `topic`, `owner` and how many relays its newest tree has."""
        return [
            {
                "id": mailbox,
                "topic": one.topic,
                "owner": one.owner,
                "relays": len(one.trees[max(one.trees)]) if one.trees else 0,
            }
            for mailbox, one in self._subscriptions.items()
        ]

    def tree(self, mailbox: str) -> dict[str, str | None] | None:
        """Return each relay's next hop by names, `None` for the mailbox; nothing if there is no such tree."""
        one = self._subscriptions.get(mailbox)
        if one is None or not one.trees:
            return None
        parents = one.trees[max(one.trees)]
        names = self._names()
        return {
            names.of(relay): None if parent is None else names.of(parent) for relay, parent in parents.items()
        }

    def subscription_of(self, message: str) -> str:
        """Return the subscription whose tree is shown with a message or probe, `""` where there is none.

        It is one that it came to, if there is any, else one on its topic. Before the first message it is the
        first.
        """
        chosen = self._chosen(message)
        if chosen is None:
            return next(iter(self._subscriptions), "")
        same = [key for key, one in self._subscriptions.items() if one.topic == chosen.topic]
        came = [key for key in same if self._owners.get(key) in chosen.inboxes]
        return next(iter([*came, *self._sent_to(chosen), *same]), "")

    def _sent_to(self, message: TracedMessage) -> list[str]:
        """Return the subscriptions to whose mailboxes a message was sent."""
        return [step.other for step in message.of("sent") if step.other in self._subscriptions]

    def tree_drawing(self, mailbox: str, daemons: Iterable[str], message: str = "") -> Diagram | None:
        """Return a subscription's tree as it is drawn, the rest of the `daemons` at its foot.

        Of a message on its topic the way is told from the rest.
        """
        if (tree := self.tree(mailbox)) is None:
            return None
        subscription, chosen = self._subscriptions[mailbox], self._chosen(message)
        lit = None
        if chosen is not None and (chosen.topic == subscription.topic or mailbox in self._sent_to(chosen)):
            lit = passage(chosen, self._names(), mailbox)
        return tree_drawing(tree, subscription.owner, daemons, lit)

    def messages(self, probes: bool = False) -> list[dict[str, Any]]:
        """Return the list of messages, the newest first; with `probes`, those as well, without a topic."""
        listed = self._messages.newest_first()[:MESSAGES_LISTED]
        if probes:
            listed += self._messages.probes_newest_first()[:PROBES_LISTED]
            listed.sort(key=attrgetter("time"), reverse=True)
        return [row(self._told(message)) for message in listed]

    def way(self, message: str) -> dict[str, Any] | None:
        """Return all that is shown of one message, the newest for an empty id; nothing if it is not kept."""
        chosen = self._chosen(message)
        return None if chosen is None else way(chosen, self._names())

    def _chosen(self, message: str) -> TracedMessage | None:
        newest = self._messages.newest_first()
        found = self._messages[message] if message else newest[0] if newest else None
        return None if found is None else self._told(found)

    def _told(self, message: TracedMessage) -> TracedMessage:
        """Return a message with what has become of it by now."""
        if message.topic is None:
            message.fate = "a probe"
        elif not self._listeners.had(message.topic, message.time):
            message.fate = "nobody subscribed"
        elif message.of("delivered"):
            message.fate = "no subscriber's condition fits"
        elif self._latest < message.time + WAITED_FOR:
            message.fate = "on its way"
        else:
            message.fate = "it came to nobody"
        return message

    def moves(self) -> list[dict[str, str]]:
        """Return the hops of messages since the last call; `from` is empty where a message entered."""
        moved = [
            {"from": start, "to": self._names().box(end) if end in self._relays else end}
            for _, start, end in sorted(self._moves)
        ]
        self._moves.clear()
        return moved

    def figures(self) -> dict[str, Any]:
        """Return the figures of delivery: counts, and the median seconds from the first drop to an inbox."""
        counts = {name: self._counts[name] for name in ("published", "delivered", "transmissions")}
        counts["probe_transmissions"] = self._counts["sent"] - self._counts["transmissions"]
        delay = round(statistics.median(self._delays), 3) if self._delays else None
        return {**counts, "delay_p50": delay}

    def history(self, now: float) -> dict[str, Any]:
        """Return the traffic of the last minutes; `now` is seconds since the testnet began."""
        return self._history.until(now)

    def load(self) -> dict[str, tuple[int, int]]:
        """Return how many messages and how many probes each daemon has sent on."""
        return {
            name: (self._sent_messages[name], self._sent[name] - self._sent_messages[name])
            for name in self._sent
        }

    def _names(self) -> OverlayWhereabouts:
        return OverlayWhereabouts(self._relays, self._owners)
