"""Queues: what waits in sessions for a client's window, or for the client, within its user's share of all."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable

from hushcast_protocol.mqtt.archive import Archive
from hushcast_protocol.mqtt.limits import MAX_HELD_BYTES, MAX_QUEUE, MAX_QUEUE_BYTES
from hushcast_protocol.mqtt.messages import Message
from hushcast_protocol.mqtt.session import Entry, Session
from hushcast_protocol.mqtt.shares import Shares

LARGEST = 16  # sessions that are taken from to make room for one message: each is looked for among all


class Queues:
    """The queues of all sessions."""

    def __init__(self, archive: Archive, counts: Counter[str]) -> None:
        """`counts` are events by name, of `delivery.COUNTS`."""
        self._archive = archive
        self._counts = counts
        self._held = Shares(MAX_HELD_BYTES)
        self._waiting: dict[str, set[Session]] = {}  # those with a queue, by user

    @property
    def held_bytes(self) -> int:
        """Bytes of the messages that wait; one counts for each session in which it does."""
        return self._held.taken

    def put(self, session: Session, entry: Entry) -> None:
        """Queue a new message behind those that wait, if there is room."""
        assert entry.message is not None, "what waits has a body"
        size = entry.message.size
        # The oldest goes: who comes back wants to know how things are now.
        while session.queue and (
            len(session.queue) >= MAX_QUEUE or session.queue_bytes + size > MAX_QUEUE_BYTES
        ):
            self._drop_oldest(session, "dropped_queue_full")
        if not self._make_room(session, size):
            self._counts["dropped_all_full"] += 1
            return
        session.queue.append(entry)
        self._grew(session, size)
        self._archive.queued(session, entry, True)

    def take_first(self, session: Session) -> tuple[Entry, Message]:
        """Take the oldest out of a queue, and return it with its message; the disk has it still."""
        first = session.queue.popleft()
        assert first.message is not None, "what waits has a body"
        self._shrank(session, first.message.size)
        return first, first.message

    def take_out(self, session: Session, is_meant: Callable[[Message], bool]) -> list[Entry]:
        """Take some out of a queue, and return them."""
        taken: list[Entry] = []
        kept: deque[Entry] = deque()
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

    def take_all(self, session: Session) -> list[Entry]:
        """Empty a queue, and return what was in it."""
        taken = list(session.queue)
        session.queue.clear()
        self._shrank(session, session.queue_bytes)
        return taken

    def restored(self, session: Session) -> None:
        """Count what came from disk."""
        if session.queue:
            self._grew(session, sum(one.message.size for one in session.queue if one.message is not None))

    def forget(self, session: Session, entry: Entry, count: str) -> None:
        """Delete an entry that was taken out from disk, and count why."""
        self._counts[count] += 1
        self._archive.done(session, entry)

    def _make_room(self, session: Session, size: int) -> bool:
        """Take from those of a user's sessions that hold the most until so many bytes more are in its share.

        Return whether they are, or as many were taken: who has more than its share since others came loses no
        more than it gets. A session that would itself hold the most gets nothing more.
        """
        user, freed = session.user, 0
        for _ in range(LARGEST):
            if freed >= size or self._held.may_take(user, size):
                return True
            largest = max(self._waiting.get(user, ()), key=_queued, default=session)
            while largest.queue_bytes > session.queue_bytes + size:
                freed += self._drop_oldest(largest, "dropped_all_full")
                if freed >= size or self._held.may_take(user, size):
                    return True
        return False

    def _drop_oldest(self, session: Session, count: str) -> int:
        """Return how many bytes it had."""
        oldest, message = self.take_first(session)
        self.forget(session, oldest, count)
        return message.size

    def _grew(self, session: Session, size: int) -> None:
        session.queue_bytes += size
        self._held.take(session.user, size)
        self._waiting.setdefault(session.user, set()).add(session)

    def _shrank(self, session: Session, size: int) -> None:
        session.queue_bytes -= size
        self._held.give_back(session.user, size)
        if not session.queue and (waiting := self._waiting.get(session.user)) is not None:
            waiting.discard(session)
            if not waiting:
                del self._waiting[session.user]


def _queued(session: Session) -> int:
    return session.queue_bytes
