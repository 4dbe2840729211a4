"""Queues: what waits in sessions for a client's window, or for the client, within its user's share of all."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from hushcast_protocol.base.shares import Shares
from hushcast_protocol.mqtt.kept.session_archive import SessionArchive
from hushcast_protocol.mqtt.limits import MqttLimits
from hushcast_protocol.mqtt.mqtt_messages import MqttMessage
from hushcast_protocol.mqtt.mqtt_session import MqttSession, PendingMessage
from hushcast_protocol.mqtt.refusals import RefusalCause, Refusals

MAX_LOOKS = 16  # looks in one step for the fullest of a user's sessions, each among up to 800: 50 µs each
MAX_TAKEN = 1_000  # messages taken out in one step to make room for others; some 7 µs each


class Queues:
    """The queues of all sessions."""

    def __init__(self, archive: SessionArchive, refusals: Refusals, limits: MqttLimits) -> None:
        self._archive = archive
        self._refusals = refusals
        self._counts = refusals.counts
        self._limits = limits
        self._held = Shares(limits.held_bytes)
        self._waiting: dict[str, set[MqttSession]] = {}  # those with a queue, by user
        self._looks = self._taken = 0  # in this step
        self._fullest: MqttSession | None = None  # as the last look of this step found it

    @property
    def held_bytes(self) -> int:
        """Bytes of the messages that wait; one counts for each session in which it does."""
        return self._held.taken

    def begin_step(self) -> None:
        """Begin a step: what it may take to make room, for however many clients, is bounded anew."""
        self._looks = self._taken = 0
        self._fullest = None

    def put(self, session: MqttSession, entry: PendingMessage, now: float) -> None:
        """Queue a new message behind those that wait, if there is room."""
        assert entry.message is not None, "what waits has a body"
        size, limits = entry.size, self._limits
        # The oldest goes: who comes back wants to know how things are now.
        while session.queue and (
            len(session.queue) >= limits.queue or session.queue_bytes + size > limits.queue_bytes
        ):
            self._drop_oldest(session, RefusalCause.QUEUE, now)
        if not self._held.take_free(session.user, size):
            if not self._make_room(session, size, now):
                self._note(session, RefusalCause.HELD, entry.message, now)
                return
            self._held.take(session.user, size)
        session.queue.append(entry)
        if len(session.queue) == 1:
            self._waiting.setdefault(session.user, set()).add(session)
        session.queue_bytes += size
        if session.is_durable:
            self._archive.queued(session, entry, True)

    def take_first(self, session: MqttSession) -> tuple[PendingMessage, MqttMessage]:
        """Take the oldest out of a queue, and return it with its message; the disk has it still."""
        first = session.queue.popleft()
        assert first.message is not None, "what waits has a body"
        self._shrank(session, first.size)
        return first, first.message

    def take_out(self, session: MqttSession, is_meant: Callable[[MqttMessage], bool]) -> list[PendingMessage]:
        """Take some out of a queue, and return them."""
        taken: list[PendingMessage] = []
        kept: deque[PendingMessage] = deque()
        size = 0
        for entry in session.queue:
            assert entry.message is not None, "what waits has a body"
            if is_meant(entry.message):
                taken.append(entry)
                size += entry.message.size
            else:
                kept.append(entry)
        if taken:
            session.queue = kept
            self._shrank(session, size)
        return taken

    def take_all(self, session: MqttSession) -> list[PendingMessage]:
        """Empty a queue, and return what was in it."""
        taken = list(session.queue)
        session.queue.clear()
        self._shrank(session, session.queue_bytes)
        return taken

    def restored(self, session: MqttSession) -> None:
        """Count what came from disk."""
        if session.queue:
            self._waiting.setdefault(session.user, set()).add(session)
            session.queue_bytes = sum(one.size for one in session.queue)
            self._held.take(session.user, session.queue_bytes)

    def forget(self, session: MqttSession, entry: PendingMessage, count: str) -> None:
        """Delete an entry that was taken out from disk, and count why."""
        self._counts[count] += 1
        self._archive.done(session, entry)

    def _make_room(self, session: MqttSession, size: int, now: float) -> bool:
        """Take from those of a user's sessions that hold the most until so many bytes more are in its share.

        Return whether they are, or as many were taken: who has more than its share since others came loses no
        more than it gets. A session that would itself hold the most gets nothing more, nor does anybody once
        a step has taken what it may.
        """
        user, freed = session.user, 0
        while freed < size and not self._held.may_take(user, size):
            fullest = self._fuller(session, size)
            if fullest is None or self._taken >= MAX_TAKEN:
                return False
            self._taken += 1
            freed += self._drop_oldest(fullest, RefusalCause.HELD, now)
        return True

    def _fuller(self, session: MqttSession, size: int) -> MqttSession | None:
        """Return one of a user's sessions that would hold more than this one with so many bytes more."""
        least = session.queue_bytes + size
        found = self._fullest
        if found is not None and found.user == session.user and found.queue_bytes > least:
            return found
        if self._looks >= MAX_LOOKS:
            return None
        self._looks += 1
        found = self._fullest = max(self._waiting.get(session.user, ()), key=_queued, default=None)
        return found if found is not None and found.queue_bytes > least else None

    def _drop_oldest(self, session: MqttSession, cause: RefusalCause, now: float) -> int:
        """Return how many bytes it had."""
        oldest, message = self.take_first(session)
        self._archive.done(session, oldest)
        self._note(session, cause, message, now)
        return message.size

    def _note(self, session: MqttSession, cause: RefusalCause, message: MqttMessage, now: float) -> None:
        self._refusals.note(cause, now, session.user, session.client_id, message.topic)

    def _shrank(self, session: MqttSession, size: int) -> None:
        session.queue_bytes -= size
        self._held.give_back(session.user, size)
        if not session.queue and (waiting := self._waiting.get(session.user)) is not None:
            waiting.discard(session)
            if not waiting:
                del self._waiting[session.user]


def _queued(session: MqttSession) -> int:
    return session.queue_bytes
