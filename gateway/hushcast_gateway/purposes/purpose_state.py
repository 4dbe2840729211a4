"""What was said of purposes: reservations, presubscriptions and the audit log, in memory and on disk."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from hushcast_gateway.purposes.audit_log import AuditLog
from hushcast_gateway.purposes.records import (
    AUDIT,
    PRESUBSCRIPTION,
    RESERVATION,
    AuditRecord,
    Presubscription,
    encode,
    key_of,
    read_presubscription,
    read_reservation,
    reservation_of,
)
from hushcast_gateway.sections.purposes_section import CONFIGURATION, PurposesSection
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.record_kinds import RecordKind
from hushcast_protocol.mqtt.kept.ledger import Ledger
from hushcast_protocol.mqtt.kept.mqtt_records import DamagedRecord
from hushcast_protocol.mqtt.topics.ways import Ways
from hushcast_protocol.purposes.cached_reservations import CachedReservationTree
from hushcast_protocol.purposes.clauses import Clause, reserve
from hushcast_protocol.purposes.reservations import ReservationList, Reservations, ReservationTree
from hushcast_protocol.purposes.vocabulary import Vocabulary
from hushcast_runtime.storage.recovery import restore
from hushcast_runtime.storage.store import Records, Store, damaged, read_records

MAX_PRESUBSCRIPTIONS = 1_000  # that one user made; each client has some filters
STORES: dict[str, type[ReservationList] | type[ReservationTree] | type[CachedReservationTree]] = {
    "flat": ReservationList,
    "tree": ReservationTree,
    "cached": CachedReservationTree,
}

_PAGE = 256  # records read at once


class PurposeState:
    """The rules as they stand. Changes go into the broker's ledger, so that answers wait for the disk."""

    def __init__(
        self,
        kind: str,
        configured: Iterable[Clause] = (),
        owners: Collection[str] = (CONFIGURATION,),
        ways: Ways | None = None,
    ) -> None:
        """`kind` is of `STORES`; `configured` are reservations that stand in the configuration.

        Of the `owners` is all of which somebody answers for: what others reserved stays, and opens nothing.
        """
        self.ways = ways or Ways()
        """Tells the names of topics and filters."""
        self.reservations: Reservations = STORES[kind](self.ways.images)
        self._presubscriptions: dict[tuple[str, str, str], Presubscription] = {}
        self._owners = frozenset(owners)
        self._audit = AuditLog()
        self._ledger: Ledger | None = None
        for clause in configured:
            self.reservations.put(clause)

    def read(self, path: Path) -> None:
        """Take up what a gateway's database holds, if it is there; raises `StoreError` or `DamagedRecord`."""
        if not path.exists():
            return
        for _, value in read_records(path, RESERVATION):
            self.reservations.put(self._owned(read_reservation(value)))
        for _, value in read_records(path, PRESUBSCRIPTION):
            self._note(read_presubscription(value))

    async def load(self, store: Store) -> None:
        """Take up what an earlier run left; raises `StoreError`, and then nothing runs.

        So it does for a damaged reservation: what it closes would be open.
        """
        async for _, value in Records(store, RESERVATION, at_once=_PAGE):
            try:
                self.reservations.put(self._owned(read_reservation(value)))
            except DamagedRecord:
                raise damaged("reservation", "without it what it closes would be open; ") from None
        await restore(
            store, PRESUBSCRIPTION, lambda _, value: self._note(read_presubscription(value)), at_once=_PAGE
        )
        await restore(store, AUDIT, self._audit.restore, at_once=_PAGE)

    def attach(self, ledger: Ledger) -> None:
        """Write changes into a ledger from now on."""
        self._ledger = ledger

    def reserve(self, clause: Clause) -> None:
        """Keep a client's reservation; raises `UsageError` where its owner has its share of all."""
        if not self.reservations.has_room_for(clause.owner, clause.filter):
            raise UsageError("the user has its share of all reservations: take some away, or use wildcards")
        self.reservations.put(clause)
        self._write(RESERVATION, *reservation_of(clause))

    def release(self, owner: str, wanted: str) -> bool:
        """Take a reservation away; return whether there was one."""
        if not self.reservations.remove(owner, wanted):
            return False
        self._write(RESERVATION, key_of(owner, wanted), None)
        return True

    def configure(self, configured: Sequence[Clause]) -> None:
        """Let other reservations stand in the configuration, however many clients have; none is on disk."""
        former = [one for one in self.reservations if one.owner == CONFIGURATION]
        for clause in former:
            self.reservations.remove(CONFIGURATION, clause.filter)
        for clause in configured:
            self.reservations.put(clause)

    def know(self, owners: Collection[str]) -> None:
        """Go by other owners: those that are gone leave their reservations, and find them again."""
        self._owners = frozenset(owners)
        for one in list(self.reservations):
            if one != (now := self._owned(one)):
                self.reservations.put(now)

    def owned(self, owner: str) -> list[str]:
        """Return the filters that an owner has reserved."""
        return [one.filter for one in self.reservations if one.owner == owner != CONFIGURATION]

    def presubscription(self, user: str, client_id: str, wanted: str) -> Presubscription | None:
        """Return what subscriptions of a client to a filter are for."""
        return self._presubscriptions.get(self._place(user, client_id, wanted))

    def presubscribe(self, made: Presubscription) -> None:
        """Keep a presubscription; raises `UsageError` at a bound."""
        place, key = self._place(made.user, made.client_id, made.filter), _key(made)
        before = self._presubscriptions.get(place)
        if before is None and len(self.made_by(made.by)) >= MAX_PRESUBSCRIPTIONS:
            raise UsageError(f"{MAX_PRESUBSCRIPTIONS} presubscriptions of one user are the most")
        if before is not None and _key(before) != key:
            self._write(PRESUBSCRIPTION, _key(before), None)
        self._note(made)
        self._write(PRESUBSCRIPTION, key, encode(made))

    def unpresubscribe(self, made: Presubscription) -> None:
        """Take a presubscription away."""
        del self._presubscriptions[self._place(made.user, made.client_id, made.filter)]
        # There may be one more on disk, from when a name was no other's yet.
        for wanted in {made.filter, *self.ways.equals(made.filter)}:
            self._write(PRESUBSCRIPTION, key_of(made.user, made.client_id, wanted), None)

    def made_by(self, user: str) -> list[Presubscription]:
        """Return the presubscriptions that a user made."""
        return [one for one in self._presubscriptions.values() if one.by == user]

    def audit(self, entry: AuditRecord) -> None:
        """Note what was done or refused."""
        self._audit.add(entry, self._write)

    def _owned(self, clause: Clause) -> Clause:
        is_gone = clause.owner not in self._owners
        return clause if clause.of_nobody is is_gone else replace(clause, of_nobody=is_gone)

    def _note(self, made: Presubscription) -> None:
        self._presubscriptions[self._place(made.user, made.client_id, made.filter)] = made

    def _place(self, user: str, client_id: str, wanted: str) -> tuple[str, str, str]:
        """Return where a presubscription is known, by whichever of its filter's names."""
        return user, client_id, min(self.ways.equals(wanted))

    def _write(self, kind: RecordKind, key: bytes, value: bytes | None) -> None:
        assert self._ledger is not None, "nothing is published before there is a broker"
        if value is None:
            self._ledger.delete(kind, key)
        else:
            self._ledger.put(kind, key, value)


def _key(made: Presubscription) -> bytes:
    return key_of(made.user, made.client_id, made.filter)


def configured(section: PurposesSection, vocabulary: Vocabulary) -> list[Clause]:
    """Return the reservations of a configuration; raises `UsageError`."""
    found = []
    for number, one in enumerate(section.reservation, 1):
        try:
            found.append(reserve(CONFIGURATION, one.filter, one.aip, one.pip, vocabulary))
        except UsageError as error:
            raise UsageError(f"purposes.reservation #{number}: {error}") from None
    return found
