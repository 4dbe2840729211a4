"""Papers that porters show a second, sealed by their daemons: counted, paid for where new, and on disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

import msgspec

from hushcast_overlay.relay.cover.cover_means import CoverMeans
from hushcast_protocol.base.crypto.hashes import LABEL
from hushcast_protocol.base.crypto.proof_of_work import ProofOfWorkCheck, inside
from hushcast_protocol.base.errors import DecodeError, PeerError, Refusal
from hushcast_protocol.base.record_kinds import RecordKind
from hushcast_protocol.base.wire import RelayId, encode
from hushcast_protocol.cover.cover_frames import CoverBill, CoverWaybill, placed_in
from hushcast_protocol.cover.cover_rules import CoverRules
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import restore, sized
from hushcast_runtime.storage.store import record_reader

_READ_AT_ONCE = 64  # papers that one step of a start opens, some 10 ms


class PaperForm(NamedTuple):
    """What tells waybills from bills here."""

    kind: RecordKind
    size: int
    """Bytes of one."""
    name: Callable[[bytes], bytes]
    refused: str
    """What counts those that do not open."""


class PaperMachine(Protocol):
    """What decides about papers."""

    def show(self, sealed: bytes, now: int, porter: RelayId) -> bool:
        """Take a paper from a porter; tell whether it is new. Raises `Refusal`, or a `PeerError`."""

    def names(self) -> Iterable[bytes]:
        """Return the names of all that are known."""


class _KeptPaper(msgspec.Struct, frozen=True, array_like=True):
    porter: RelayId
    sealed: bytes


_decode = record_reader(_KeptPaper, "paper of a daemon under cover")


class ShownPapers:
    """Those of one kind that one second was shown."""

    def __init__(self, form: PaperForm, machine: PaperMachine, rules: CoverRules, means: CoverMeans) -> None:
        self._form = form
        self._machine = machine
        self._rules = rules
        self._means = means
        self._store = means.context.store
        self._counters = means.context.counters
        self._stamps = ProofOfWorkCheck(means.relay)
        self._kept: set[bytes] = set()  # names of those on disk
        self._shows: Counter[RelayId] = Counter()  # of each porter since the last round

    @property
    def _now(self) -> int:
        return self._rules.round_at(self._means.context.env.now())

    async def load(self) -> None:
        """Read them back, judged as when they came."""
        await restore(self._store, self._form.kind, self._take_up, at_once=_READ_AT_ONCE)

    def _take_up(self, key: bytes, value: bytes) -> None:
        kept = _decode(value)
        if self._form.name(sized(kept.sealed, self._form.size)) != sized(key, LABEL):
            raise DecodeError("a paper is kept under another's name")
        try:
            self._machine.show(kept.sealed, self._now, kept.porter)
        except Refusal:  # it holds no more, or a list has changed: its daemon finds so
            self._store.write_soon(Change(self._form.kind, key, None))
        else:
            self._kept.add(key)

    def show(self, frame: CoverWaybill | CoverBill, sealed: bytes, porter: RelayId, most: int) -> None:
        """Take what a porter shows; what is new is paid for where this relay asks for stamps. Durable soon.

        Raises `DecodeError` where a porter shows more than `most` in a round.
        """
        self._shows[porter] += 1
        if self._shows[porter] > most:
            raise DecodeError("a porter shows more than its daemons have")
        name = self._form.name(sealed)
        asked = inside(self._means.shards.least_price(self._means.relay), 1)
        epoch = self._means.shards.calendar.epoch(self._means.context.env.now())
        if name not in self._kept and not self._stamps.spend(frame.stamp, placed_in(frame), epoch, asked):
            self._counters.add("refused_stamp")
            return
        try:
            is_new = self._machine.show(sealed, self._now, porter)
        except Refusal:
            self._counters.add("refused_quota")
        except PeerError:  # its daemon's doing: the porter cannot read it
            self._counters.add(self._form.refused)
        else:
            if is_new:
                self._kept.add(name)
                self._store.write_soon(Change(self._form.kind, name, encode(_KeptPaper(porter, sealed))))

    def end_round(self) -> None:
        """Forget what the machine has let go of; each porter may show as many again."""
        self._shows.clear()
        gone = self._kept.difference(self._machine.names())
        self._kept -= gone
        self._store.write_soon(*[Change(self._form.kind, name, None) for name in gone])
