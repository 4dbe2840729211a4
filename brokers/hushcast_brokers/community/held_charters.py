"""The charters that one daemon holds, the newest of each community, and its keys of their epochs; on disk."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

import msgspec

from hushcast_protocol.base.crypto.secrets import AgreementKey, EpochKey
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import AuthenticationError, PeerError, Refusal
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import PublicKey, decoder, encode
from hushcast_protocol.brokers.community.charter import (
    MAX_CHARTER,
    MAX_COMMUNITIES,
    Charter,
    check_charter,
    check_newer,
    epoch_key,
)
from hushcast_protocol.brokers.community.community_epochs import (
    CommunityEpochs,
    ForgottenEpoch,
    KnownEpoch,
    MemberEpoch,
)
from hushcast_protocol.brokers.frames import Communities, KnownCharter, NewCharter
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_runtime.change_signal import ChangeSignal
from hushcast_runtime.counters import Counters
from hushcast_runtime.logs import log
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import number, restore
from hushcast_runtime.storage.store import Store, record_reader

_CHARTER = RecordKind(
    "charter",
    StateOwner.BROKERS_DAEMON,
    StateOwner.BROKER,
    holds="with communities: the newest charter of each; at a daemon, of those that it is in",
    lifetime="until there is a newer one",
    bound=f"{MAX_COMMUNITIES}",
)
_EPOCH = RecordKind(
    "epoch",
    StateOwner.BROKERS_DAEMON,
    StateOwner.BROKER,
    holds="with communities: keys of their epochs",
    lifetime="until the last message of the epoch has lapsed",
)
_KEY, _NUMBER = 32, 8  # bytes of a community's key, and of an epoch's number, in the key of a record
_decode = decoder(Signed, "charter", MAX_CHARTER + 256)

Heard = Callable[[MemberEpoch], None]


class _StoredEpoch(msgspec.Struct, frozen=True, array_like=True):
    begins: int
    key: bytes
    """None where this daemon is not in the community."""


_read = record_reader(_StoredEpoch, "epoch")


class HeldCharters:
    """What is held; nothing before there was any."""

    def __init__(
        self,
        network: BrokersNetwork,
        own: AgreementKey,
        keepers: Collection[PublicKey] | None,
        store: Store,
        counters: Counters,
    ) -> None:
        """`own` is the key that charters admit this daemon by.

        `keepers` are those whose charters are taken; `None`: all of whom a parent says that they are.
        """
        self.epochs = CommunityEpochs(network.calendar)
        self._network = network.id
        self._own = own
        self._keepers = None if keepers is None else frozenset(keepers)
        self._said: tuple[PublicKey, ...] | None = None  # by the parent, since this daemon started
        self._store = store
        self._counters = counters
        self._newest: dict[PublicKey, Charter] = {}
        self._others: dict[PublicKey, int] = {}  # newest epochs of communities that are no concern of ours
        self._changed = ChangeSignal()
        self._opened: Heard = lambda epoch: None
        self._over: Heard = lambda epoch: None

    def follow(self, opened: Heard, over: Heard) -> None:
        """Have somebody hear which epochs open, and which are over."""
        self._opened, self._over = opened, over

    async def load(self) -> None:
        """Take up what is on disk; charters of another network are none."""
        await restore(self._store, _EPOCH, self._take_epoch)
        await restore(self._store, _CHARTER, self._take_charter)
        if self._keepers is not None:
            self.only(self._keepers)

    def _take_epoch(self, key: bytes, record: bytes) -> None:
        community, epoch = key[:_KEY], number(key[_KEY:])
        self.epochs.add(community, epoch, _term(community, epoch, _read(record)))

    def _take_charter(self, _: bytes, record: bytes) -> None:
        try:
            charter = check_charter(_decode(record), self._network)
        except AuthenticationError:
            log.warning("a charter on disk is not this network's: it is asked for again")
        else:
            self._newest[charter.community] = charter

    @property
    def keepers(self) -> tuple[PublicKey, ...] | None:
        """The communities that there are, by their keepers' keys; `None` before anybody above has said."""
        return self._said if self._keepers is None else tuple(sorted(self._keepers))

    @property
    def known(self) -> tuple[KnownCharter, ...]:
        """What to tell somebody who may hold newer ones."""
        own = {one.community: one.epoch for one in self._newest.values()}
        return tuple(KnownCharter(*one) for one in (self._others | own).items())[:MAX_COMMUNITIES]

    def later(self, known: Mapping[PublicKey, int]) -> list[Charter]:
        """Return what is held and newer than those epochs, or of other communities."""
        return [one for one in self._newest.values() if one.epoch > known.get(one.community, -1)]

    def newest(self, community: PublicKey) -> Charter | None:
        """Return the newest charter of a community."""
        return self._newest.get(community)

    def holds(self, signed: Signed) -> bool:
        """Tell whether this very charter is the newest of its community."""
        return any(one.signed == signed for one in self._newest.values())

    def take(self, signed: Signed) -> bool:
        """Take a charter, which is on disk soon; return whether it is newer than what was held.

        Raises `PeerError`, and `Refusal`: `unknown` where there is no such community, `quota` for one more.
        """
        charter = check_charter(signed, self._network)
        community = charter.community
        if self._keepers is not None and community not in self._keepers:
            if len(self._others) < MAX_COMMUNITIES:
                self._others[community] = max(charter.epoch, self._others.get(community, 0))
            raise Refusal("unknown")
        held = self._newest.get(community)
        try:
            if not check_newer(charter, held):
                return False
        except AuthenticationError:
            self._counters.add("charters_clashed")
            log.warning("a keeper signed two charters of one epoch: the first counts")
            raise
        if held is None and len(self._newest) >= MAX_COMMUNITIES:
            raise Refusal("quota")
        self._counters.add("charters_taken")
        self._newest[community] = charter
        self._enter(charter)
        self._store.write_soon(Change(_CHARTER, community, encode(signed)))
        self._tell()
        return True

    def hear(self, frame: Communities | NewCharter) -> None:
        """Take what a parent, or the root, says; what does not hold is counted and left out.

        Which communities there are is heard only where the configuration does not say.
        """
        try:
            if isinstance(frame, NewCharter):
                self.take(frame.charter)
            elif self._keepers is None:
                self._said = frame.keepers
                self.only(frame.keepers)
                self._tell()
        except PeerError:
            self._counters.add("charters_refused")
        except Refusal as refusal:  # an unknown community is others' affair
            self._counters.add("charters_refused", int(refusal.reason != "unknown"))

    def only(self, keepers: Collection[PublicKey]) -> None:
        """Forget all communities but these."""
        for community in self._newest.keys() - set(keepers):
            del self._newest[community]
            self._store.write_soon(Change(_CHARTER, community, None))
            self._end(self.epochs.forget(community))
            self._tell()

    def replace_keepers(self, keepers: Collection[PublicKey]) -> None:
        """Take charters of these alone from now on."""
        self._keepers = frozenset(keepers)
        self.only(keepers)
        self._tell()

    def expire(self, now: float) -> None:
        """Forget the epochs of which nothing travels any more."""
        if over := self.epochs.expire(now):
            self._end(over)
            self._tell()

    async def changed(self) -> None:
        """Return when anything is held otherwise than now."""
        await self._changed.wait()

    def _enter(self, charter: Charter) -> None:
        """Know the epoch of a charter, with its key if this daemon is a member."""
        community, number = charter.community, charter.epoch
        try:
            key = epoch_key(charter, self._own)
        except AuthenticationError:
            log.warning("a charter lists this daemon with a key that is not sealed to it: ask the keeper")
            key = None
        kept = _StoredEpoch(charter.begins, key.reveal() if key is not None else b"")
        term = _term(community, number, kept)
        over = self.epochs.add(community, number, term)
        if term.epoch is not None:
            self._opened(term.epoch)
        self._store.write_soon(Change(_EPOCH, _place(community, number), encode(kept)))
        self._end(over)

    def _end(self, over: Iterable[ForgottenEpoch]) -> None:
        for gone in over:
            if gone.epoch is not None:
                self._over(gone.epoch)
            self._store.write_soon(Change(_EPOCH, _place(gone.community, gone.number), None))

    def _tell(self) -> None:
        self._changed.tell()


def _place(community: PublicKey, number: int) -> bytes:
    return community + number.to_bytes(_NUMBER, "big")


def _term(community: PublicKey, number: int, kept: _StoredEpoch) -> KnownEpoch:
    if not kept.key:
        return KnownEpoch(kept.begins, None)
    return KnownEpoch(kept.begins, MemberEpoch(community, number, kept.begins, EpochKey(kept.key)))
