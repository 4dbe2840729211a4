"""History: the messages of some topics, for whoever asks for what was published while it was away.

A SUBSCRIBE with the user property `since` gets them as it gets retained messages, and its SUBACK behind them.
Messages are kept as they are handed out: on topics with a history each has the user properties `id` and
`time`, of which an `id` that its publisher gave it stays.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator

from hushcast_protocol.base.crypto.secrets import Randomness
from hushcast_protocol.base.shares import Shares, User
from hushcast_protocol.mqtt.kept.retained_messages import FoundMessages
from hushcast_protocol.mqtt.kept.session_archive import SessionArchive
from hushcast_protocol.mqtt.limits import MAX_PLANS, PIECE
from hushcast_protocol.mqtt.mqtt_messages import MqttMessage
from hushcast_protocol.mqtt.mqtt_settings import MqttSettings
from hushcast_protocol.mqtt.topics.topic_filters import matches, normal
from hushcast_protocol.mqtt.wire.packets import Properties

ID, TIME, SINCE = "id", "time", "since"  # user properties
ALL, LATEST = "all", "latest"  # values of `since`, beside an id and a Unix time
ID_LENGTH = 12  # characters; as ntfy's, whose clients ask by them
NO_HISTORY = ("cache", "no")  # the user property of a message that is not to be kept

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


def is_message_id(text: str) -> bool:
    """Tell whether this can be the id of a message."""
    return len(text) == ID_LENGTH and text.isascii() and text.isalnum()


def message_id(data: bytes) -> str:
    """Return the id that `ID_LENGTH` random bytes make."""
    return "".join(_LETTERS[one % len(_LETTERS)] for one in data)


def since_of(properties: Properties) -> str:
    """Return since when a SUBSCRIBE wants what was published; empty where it does not say."""
    return next((value for name, value in properties.get("user_property", ()) if name == SINCE), "")


class KeptMessage:
    """A message of a history; `order` counts up, and names its record."""

    __slots__ = ("id", "message", "order", "time", "user")

    def __init__(self, message: MqttMessage, order: int, time: int, user: User) -> None:
        """`time` is a Unix time; `user` is whose share it is part of."""
        self.message = message
        self.order = order
        self.time = time
        self.user = user
        said = message.properties.get("user_property", ())
        self.id = next((value for name, value in said if name == ID), "")


class MessageHistory:
    """The history of all topics that have one."""

    def __init__(self, archive: SessionArchive, randomness: Randomness, settings: MqttSettings) -> None:
        """`settings` say which topics have one, how far it goes back, and how much all may have."""
        self._archive = archive
        self._randomness = randomness
        self._filters = tuple(map(normal, settings.history))
        self._seconds = settings.history_seconds
        self._kept: dict[int, KeptMessage] = {}  # by order, which grows
        self._by_id: dict[str, int] = {}
        self._by_user: dict[User, deque[int]] = {}
        self._places = Shares(settings.limits.history)
        self._bytes = Shares(settings.limits.history_bytes)
        self._answers: dict[str, bool] = {}
        self.is_used = bool(settings.history)
        """Whether some topics have one."""

    def __len__(self) -> int:
        """Return how many messages are kept."""
        return len(self._kept)

    def keeps(self, topic: str) -> bool:
        """Tell whether a topic has a history."""
        if not self.is_used:
            return False
        known = self._answers.get(topic)
        if known is None:
            known = any(matches(one, normal(topic)) for one in self._filters)
            if len(self._answers) >= MAX_PLANS:
                self._answers.clear()
            self._answers[topic] = known
        return known

    def taken(self, message: MqttMessage, user: User, now: float) -> MqttMessage:
        """Keep a user's message if its topic has a history; return what is handed out.

        Where the user's share is full, its own oldest go.
        """
        said = message.properties.get("user_property", [])
        if not self.keeps(message.topic) or NO_HISTORY in said:
            return message
        given = next((value for name, value in said if name == ID and is_message_id(value)), "")
        own = (ID, given or message_id(self._randomness(ID_LENGTH))), (TIME, str(int(now)))
        rest = [one for one in said if one[0] not in (ID, TIME)]
        marked = message.under(message.topic)
        marked.properties = {**message.properties, "user_property": [*own, *rest]}
        if self._make_room(user, marked.size):
            kept = KeptMessage(marked, self._archive.new_number(), int(now), user)
            self._archive.kept(kept.order, marked, user, kept.time)
            self.restored(kept)
        return marked

    def restored(self, kept: KeptMessage) -> None:
        """Take up a message that is on disk; they come in order."""
        self._kept[kept.order] = kept
        if kept.id:  # the first of an id: who gives another's again keeps nobody from what is between
            self._by_id.setdefault(kept.id, kept.order)
        self._by_user.setdefault(kept.user, deque()).append(kept.order)
        self._places.take(kept.user)
        self._bytes.take(kept.user, kept.message.size)

    def since(self, wanted: str, since: str) -> FoundMessages:
        """Give the messages whose topics a filter matches, in order, from an id or a Unix time on.

        Those behind an id that is not there any more are all: nothing is left out. What is kept after this
        call is left out, and what is deleted meanwhile. A `since` that is none finds nothing.
        """
        newest = next(reversed(self._kept), 0)
        if since in (ALL, LATEST):
            return self._matching(wanted, 0, newest, 0, since == LATEST)
        if is_message_id(since):
            return self._matching(wanted, self._by_id.get(since, 0), newest, 0, False)
        if since.isascii() and since.isdecimal():
            return self._matching(wanted, 0, newest, int(since), False)
        return iter(())

    def _matching(
        self, wanted: str, behind: int, newest: int, time: int, last_alone: bool
    ) -> Iterator[MqttMessage | None]:
        found: dict[str, int] = {}
        wanted = normal(wanted)
        for kept in self._all():
            if kept is None:
                yield None
                continue
            if not behind < kept.order <= newest or kept.time < time:
                continue
            if not matches(wanted, normal(kept.message.topic)):
                continue
            if last_alone:
                found[kept.message.topic] = kept.order
            else:
                yield kept.message
        for order in found.values():
            if (last := self._kept.get(order)) is not None:
                yield last.message

    def _all(self) -> Iterator[KeptMessage | None]:
        """Give all that is kept, piece by piece, with `None` between two; what is deleted meanwhile is not.

        By number alone: who takes its time would hold messages that gave way long ago.
        """
        for looked, order in enumerate(list(self._kept), 1):
            if (kept := self._kept.get(order)) is not None:
                yield kept
            if looked % PIECE == 0:
                yield None

    def delete(self, is_meant: Callable[[MqttMessage], bool], found: Counter[str]) -> Iterator[None]:
        """Delete what was withdrawn or purged, piece by piece, and count it by topic."""
        for kept in self._all():
            if kept is None:
                yield
            elif is_meant(kept.message):
                self._remove(kept)
                found[kept.message.topic] += 1

    def count(self, is_meant: Callable[[MqttMessage], bool], found: Counter[str]) -> Iterator[None]:
        """Count by topic what `delete` would, piece by piece."""
        for kept in self._all():
            if kept is None:
                yield
            else:
                found[kept.message.topic] += is_meant(kept.message)

    def purge(self, now: float) -> Iterator[None]:
        """Delete what is too old, what nobody should be given, and what has no history any more."""
        for kept in self._all():
            if kept is None:
                yield
                continue
            is_old = kept.time + self._seconds <= now or kept.message.is_expired(now)
            if is_old or not self.keeps(kept.message.topic):
                self._remove(kept)

    def _make_room(self, user: User, size: int) -> bool:
        own = self._by_user.get(user, ())
        while not (self._places.may_take(user) and self._bytes.may_take(user, size)):
            if not own:
                return False
            if (kept := self._kept.get(own[0])) is None:
                own.popleft()
            else:
                self._remove(kept)
        return True

    def _remove(self, kept: KeptMessage) -> None:
        del self._kept[kept.order]
        if self._by_id.get(kept.id) == kept.order:
            del self._by_id[kept.id]
        own = self._by_user[kept.user]
        if own and own[0] == kept.order:
            own.popleft()
        if not own:
            del self._by_user[kept.user]
        self._places.give_back(kept.user)
        self._bytes.give_back(kept.user, kept.message.size)
        self._archive.unkept(kept.order, kept.message)
