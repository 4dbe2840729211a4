"""What is retained here and still on its way to the daemon: a start sends it again.

A message of QoS 0, and a will, is repeated by nobody: without this another house would keep, for good, what
was replaced or deleted in the moment of a kill.
"""

from __future__ import annotations

from collections import Counter

from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.mqtt.kept.ledger import Ledger
from hushcast_protocol.mqtt.topics.topic_filters import is_name
from hushcast_runtime.storage.recovery import restore
from hushcast_runtime.storage.store import Store

_KIND = RecordKind(
    "gateway-unsent",
    StateOwner.GATEWAY,
    holds="topics of which something was retained here that the daemon does not have yet",
    lifetime="until it has it",
    bound="1,000, as many as wait for the daemon",
)


class RetainedBacklog:
    """The topics, each with the number of its messages that are under way."""

    def __init__(self) -> None:
        self._under_way: Counter[str] = Counter()
        self._ledger: Ledger | None = None

    async def load(self, store: Store, ledger: Ledger) -> list[str]:
        """Return the topics that an earlier run left, to be noted again; write with `ledger` from now on."""
        found: list[str] = []

        def take(key: bytes, value: bytes) -> None:
            if not is_name(topic := key.decode()):
                raise DecodeError("a topic that nobody published to")
            found.append(topic)

        await restore(store, _KIND, take)
        self._ledger = ledger
        for topic in self._under_way:  # wills, which go with the start
            ledger.put(_KIND, topic.encode(), b"")
        return found

    def note(self, topic: str) -> None:
        """Note, in the step in which it is retained, that a message is under way."""
        self._under_way[topic] += 1
        if self._under_way[topic] == 1 and self._ledger is not None:
            self._ledger.put(_KIND, topic.encode(), b"")

    def done(self, topic: str) -> None:
        """Note that one that was noted is so no more, whatever became of it."""
        self._under_way[topic] -= 1
        if not self._under_way[topic]:
            del self._under_way[topic]
            if self._ledger is not None:
                self._ledger.delete(_KIND, topic.encode())
