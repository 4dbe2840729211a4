"""Delayed messages: what is published to `$delayed/SECONDS/TOPIC` waits, and is published to TOPIC then.

The form is EMQX's, which clients know. What waits is on disk, and belongs to no session: its client may go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from heapq import heappop, heappush

from hushcast_protocol.base.shares import Shares
from hushcast_protocol.mqtt.kept.session_archive import SessionArchive
from hushcast_protocol.mqtt.limits import MAX_SESSION_SECONDS, MqttLimits
from hushcast_protocol.mqtt.mqtt_messages import MqttMessage
from hushcast_protocol.mqtt.mqtt_session import MqttSession

PREFIX = "$delayed/"
AGAIN = 60.0  # seconds after which a message is published again that the network had no room for
_FORM = re.compile(r"\$delayed/([0-9]{1,7})/(.+)", re.DOTALL)


class DelayedMessage:
    """A message that waits until `due`, a Unix time."""

    __slots__ = ("due", "is_spread", "message", "number", "sender", "token")

    def __init__(
        self, message: MqttMessage, sender: MqttSession, due: float, number: int, token: bytes
    ) -> None:
        """`sender` stands for the client, which may be gone; it has no link and no subscriptions.

        `number` names it on disk, `token` to the network beyond, which takes it once.
        """
        self.message = message
        self.sender = sender
        self.due = due
        self.number = number
        self.token = token
        self.is_spread = False
        """Whether the clients here have it already."""

    def __lt__(self, other: DelayedMessage) -> bool:
        """Tell whether it is due first; of two that are due at once, whether it came first."""
        return (self.due, self.number) < (other.due, other.number)


class DelayedMessages:
    """What waits, each user its share."""

    def __init__(self, archive: SessionArchive, limits: MqttLimits | None) -> None:
        """`limits` say how much may wait; without them nothing does."""
        self._archive = archive
        self._places = Shares(0 if limits is None else limits.delayed)
        self._bytes = Shares(0 if limits is None else limits.delayed_bytes)
        self.is_on = limits is not None and limits.delayed > 0
        self._waiting: list[DelayedMessage] = []

    @property
    def count(self) -> int:
        """How many wait, or are on their way to the network."""
        return self._places.taken

    def waiting(self) -> list[DelayedMessage]:
        """Return those that wait, the first that is due first."""
        return sorted(self._waiting)

    def has_room_for(self, message: MqttMessage, user: str) -> bool:
        """Tell whether one more may wait."""
        return self._places.may_take(user) and self._bytes.may_take(user, message.size)

    def put(self, message: MqttMessage, sender: MqttSession, due: float, token: bytes) -> None:
        """Let a message wait for which there is room."""
        one = DelayedMessage(message, sender, due, self._archive.new_number(), token)
        self._archive.delayed(one.number, message, sender, due, token)
        self.restored(one)

    def restored(self, one: DelayedMessage) -> None:
        """Take one that the disk has."""
        self._places.take(one.sender.user)
        self._bytes.take(one.sender.user, one.message.size)
        heappush(self._waiting, one)

    def due(self, now: float) -> Iterator[DelayedMessage]:
        """Give each that is due, which waits no longer: `done` or `again` comes next."""
        while self._waiting and self._waiting[0].due <= now:
            yield heappop(self._waiting)

    def again(self, one: DelayedMessage, due: float) -> None:
        """Let one that was due wait for longer."""
        one.due = due
        heappush(self._waiting, one)

    def done(self, one: DelayedMessage) -> None:
        """Forget one that was published, or never will be."""
        self._places.give_back(one.sender.user)
        self._bytes.give_back(one.sender.user, one.message.size)
        self._archive.undelayed(one.number, one.message)


def delay_of(topic: str) -> tuple[int, str] | None:
    """Return the seconds that a topic asks for, and the topic behind them; `None` if it is no such topic."""
    found = _FORM.fullmatch(topic)
    if found is None or int(found[1]) > MAX_SESSION_SECONDS:
        return None
    return int(found[1]), found[2]
