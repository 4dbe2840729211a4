"""The picture of a testnet, folded from the lines of its traces; pure."""

from __future__ import annotations

import statistics
from collections import Counter, OrderedDict, deque
from dataclasses import dataclass, field
from typing import Any

MESSAGES_KEPT = 2_000  # messages remembered: a publication is told with each of its attempts
DELAYS_KEPT = 200  # deliveries of which the median is told
MOVES_KEPT = 500  # hops not yet shown


@dataclass
class _Subscription:
    topic: str
    owner: str
    trees: dict[int, dict[str, str | None]] = field(default_factory=dict)  # by day


class Picture:
    """The state folded from all traces so far."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}  # of relays' keys
        self._subscriptions: dict[str, _Subscription] = {}  # by their mailboxes' keys
        self._published: OrderedDict[str, None] = OrderedDict()
        self._entered: OrderedDict[str, float] = OrderedDict()
        self._delays: deque[float] = deque(maxlen=DELAYS_KEPT)
        self._moves: deque[dict[str, str]] = deque(maxlen=MOVES_KEPT)
        self._counts: Counter[str] = Counter()
        self._sent: Counter[str] = Counter()

    def take(self, name: str, record: dict[str, Any]) -> None:
        """Take in one line of the daemon `name`'s traces; whatever the picture has no place for passes by."""
        kind, message = record.get("kind"), record.get("message")
        match kind:
            case "started":
                self._names[record["node"]] = name
            case "subscribed":
                self._subscriptions[record["mailbox"]] = _Subscription(record["topic"], name)
            case "unsubscribed":
                self._subscriptions.pop(record["mailbox"], None)
            case "installed" if "tree" in record and record["mailbox"] in self._subscriptions:
                trees = self._subscriptions[record["mailbox"]].trees
                trees[record["day"]] = record["tree"]
                trees.pop(record["day"] - 2, None)
            case "published" if record.get("origins") and message not in self._published:
                self._published[str(message)] = None
                if len(self._published) > MESSAGES_KEPT:
                    self._published.popitem(last=False)
                self._counts["published"] += 1
            case "drop":
                self._entered.setdefault(str(message), record["time"])
                if len(self._entered) > MESSAGES_KEPT:
                    self._entered.popitem(last=False)
                self._move("", name, str(message))
            case "sent":
                self._counts["transmissions"] += 1
                self._sent[name] += 1
                self._move(name, record["next"], str(message))
            case "delivered" if "topic" in record:  # the truth; what was observed stands beside it
                self._counts["delivered"] += 1
                if (entered := self._entered.get(str(message))) is not None:
                    self._delays.append(max(0.0, record["time"] - entered))

    def _move(self, start: str, end: str, message: str) -> None:
        self._moves.append({"from": start, "to": end, "message": message[:12]})

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
        return {
            self._name(relay): None if parent is None else self._name(parent)
            for relay, parent in parents.items()
        }

    def moves(self) -> list[dict[str, str]]:
        """Return the hops since the last call; `from` is empty where a message entered."""
        moved = [move | {"to": self._name(move["to"])} for move in self._moves]
        self._moves.clear()
        return moved

    def figures(self) -> dict[str, Any]:
        """Return the figures of delivery: counts, and the median seconds from the first drop to an inbox."""
        counts = {name: self._counts[name] for name in ("published", "delivered", "transmissions")}
        delay = round(statistics.median(self._delays), 3) if self._delays else None
        return {**counts, "delay_p50": delay}

    def load(self) -> dict[str, int]:
        """Return how many messages each daemon has sent on."""
        return dict(self._sent)

    def _name(self, key: str) -> str:
        if (one := self._subscriptions.get(key)) is not None:
            return one.owner
        return self._names.get(key, key)
