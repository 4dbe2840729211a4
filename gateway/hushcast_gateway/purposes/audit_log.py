"""The audit log: who reserved what and when, and what was refused; never a payload.

What was done and what was refused are bounded apart: who is refused again and again must not push out what
others did. Refusals of one client that follow each other and are alike count once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from hushcast_gateway.purposes import commands
from hushcast_gateway.purposes.records import AUDIT, AuditRecord, What, encode, read_audit
from hushcast_protocol.base.record_kinds import RecordKind
from hushcast_protocol.mqtt.kept.mqtt_records import number_of
from hushcast_protocol.mqtt.limits import MAX_TOPIC
from hushcast_protocol.purposes.purpose_names import MAX_PURPOSE_LEVEL, MAX_PURPOSE_LEVELS

MAX_DONE = 10_000  # entries of what was done; some 2 MB. Then the oldest goes
MAX_REFUSED = 1_000  # entries of what was refused, and of what others withdrew
MAX_NOTED = 8  # purposes of a refusal that are noted; with the bounds below, 6 KB at worst
_PURPOSE = MAX_PURPOSE_LEVELS * (MAX_PURPOSE_LEVEL + 1)  # characters of one

Write = Callable[[RecordKind, bytes, bytes | None], None]
"""Puts a record, or deletes it."""


class AuditLog:
    """Entries in order."""

    def __init__(self) -> None:
        self._numbers: dict[bool, deque[int]] = {False: deque(), True: deque()}
        self._next = 1
        self._last_refused: AuditRecord | None = None

    def restore(self, key: bytes, value: bytes) -> None:
        """Take an entry from disk; they come in order. Raises `DamagedRecord`."""
        number = number_of(key)
        self._numbers[_by_strangers(read_audit(value))].append(number)
        self._next = number + 1

    def add(self, entry: AuditRecord, write: Write) -> None:
        """Write an entry, and delete the oldest of its kind if there are too many."""
        if entry.refused:
            last, self._last_refused = self._last_refused, entry
            if last is not None and _is_alike(last, entry):
                return
        by_strangers = _by_strangers(entry)
        numbers = self._numbers[by_strangers]
        numbers.append(self._next)
        write(AUDIT, self._next.to_bytes(8, "big"), encode(entry))
        self._next += 1
        if len(numbers) > (MAX_REFUSED if by_strangers else MAX_DONE):
            write(AUDIT, numbers.popleft().to_bytes(8, "big"), None)


def _by_strangers(entry: AuditRecord) -> bool:
    return bool(entry.refused) or entry.what == "withdrawn"


def refusal(
    user: str,
    client_id: str,
    what: What,
    wanted: str,
    aip: Sequence[str],
    pip: Sequence[str],
    why: str,
) -> AuditRecord:
    """Return what to note of something refused, less the time: who is refused may write what it likes."""
    return AuditRecord(0.0, user, client_id, what, wanted[:MAX_TOPIC], _cut(aip), _cut(pip), why)


def _cut(purposes: Sequence[str]) -> tuple[str, ...]:
    return tuple(one[:_PURPOSE] for one in purposes[:MAX_NOTED])


def _is_alike(one: AuditRecord, other: AuditRecord) -> bool:
    return (one.user, one.client_id, one.what, one.filter) == (
        other.user,
        other.client_id,
        other.what,
        other.filter,
    )


def named_in(command: commands.Command) -> tuple[What, str, Sequence[str], Sequence[str]]:
    """Return how the audit log names a command, its filter and purposes."""
    if isinstance(command, commands.ControlCommand):
        return "control", command.name, (), ()
    if isinstance(command, commands.ReserveCommand):
        return "reserve", command.filter, command.aip, command.pip
    if isinstance(command, commands.RegisterCommand):
        return "message", command.filter, command.aip, ()
    if isinstance(command, commands.ReleaseCommand):
        return "release", command.filter, (), ()
    return "presubscribe", command.filter, (command.purpose,), ()
