"""Which authorities a daemon trusts, from those pinned in its configuration to those of now."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import msgspec

from hushcast_protocol.authorities.authority_set import Authorities, AuthorityContact
from hushcast_protocol.authorities.chain import MAX_TURNS, Chain, ChainState, handed_over
from hushcast_protocol.authorities.evidence import Fork
from hushcast_protocol.authorities.head_answers import follow
from hushcast_protocol.authorities.heads import CertifiedHead, Head, decode_head
from hushcast_protocol.authorities.network_wire import wire_by
from hushcast_protocol.base.errors import AuthenticationError, PeerError
from hushcast_protocol.base.key_handovers import KeyHandover
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.roster import Network
from hushcast_protocol.base.versions.network_wire import NetworkWire
from hushcast_protocol.base.wire import PublicKey, encode
from hushcast_runtime.logs import log
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.store import Store, record_reader

_KIND = RecordKind(
    "authorities",
    StateOwner.OVERLAY_DAEMON,
    holds="which directories are followed, and proof of a fork",
    lifetime="for ever",
    bound="1",
)
_KEY = b"followed"


_Pin = tuple[tuple[PublicKey, ...], int]
"""The keys of a set of authorities, in order, and its quorum."""


class _Stored(msgspec.Struct, frozen=True, array_like=True):
    pins: tuple[_Pin, ...]
    followed: ChainState


_decode = record_reader(
    _Stored, "authorities", "without it this daemon might follow what it has refused before; "
)


class TrustedAuthorities:
    """Where one daemon stands with the heads of its network, kept in its store."""

    def __init__(self, network: Network, members: Sequence[AuthorityContact], quorum: int) -> None:
        """Pin these authorities by their keys, and begin at their addresses."""
        self._network = network
        self._members = tuple(members)
        self._pin: _Pin = tuple(sorted(member.key for member in members)), quorum
        self._pins: tuple[_Pin, ...] = (self._pin,)
        """Of all sets that were in charge since: any of them may be in the configuration."""
        self._state: ChainState | None = None
        self._turn: tuple[int, int] | None = None
        """The first epoch of the wire in force, and which one was before."""
        self._decoded: tuple[bytes, Head] | None = None

    @property
    def state(self) -> ChainState | None:
        """Where it stands, `None` before the first head."""
        return self._state

    @property
    def forked(self) -> int | None:
        """The epoch that there are two heads of, if there is proof of that."""
        fork = self._state.fork if self._state is not None else None
        return None if fork is None else decode_head(fork.first.head).epoch

    @property
    def newest(self) -> Head | None:
        """The newest head that is followed; decoded once, as each link that is opened asks for it."""
        newest = self._state.newest if self._state is not None else None
        if newest is None:
            return None
        if self._decoded is None or self._decoded[0] is not newest.head:
            self._decoded = newest.head, decode_head(newest.head)
        return self._decoded[1]

    def wire(self, epoch: int) -> NetworkWire | None:
        """Return what the network speaks in an epoch of about now, `None` before the first head."""
        head = self.newest
        if head is None:
            return None
        if self._turn is not None and epoch < self._turn[0]:
            return NetworkWire(self._turn[1], head.authorities.wire, self._turn[0])
        return wire_by(head, epoch)

    def pin(self, key: PublicKey) -> None:
        """Pin another key of a directory alone, which came to it before any head."""
        assert self._state is None
        self._members = (AuthorityContact(key, self._members[0].address),)
        self._pin = (key,), 1
        self._pins = (self._pin,)

    def check(self, certified: CertifiedHead) -> None:
        """Raise a `PeerError` unless those that are followed, or those before them, signed a head."""
        if self._state is None:
            raise AuthenticationError("a head was kept, and no authorities")
        Chain(self._network.id, self._state).check(certified)

    def members(self) -> list[AuthorityContact]:
        """Return who is to be asked: the authorities of now, also where the configuration says they are."""
        if self._state is None:
            return list(self._members)
        now = self._state.authorities
        moved = [one for one in self._members if one.key in now.keys and one not in now.members]
        return [*now.members, *moved]

    def coming(self) -> list[AuthorityContact]:
        """Return who will be an authority and is none yet."""
        head = Chain(self._network.id, self._state).head if self._state is not None else None
        if head is None or head.change is None:
            return []
        now = {member.key for member in self.members()}
        return [member for member in head.change.authorities.members if member.key not in now]

    async def load(self, store: Store) -> None:
        """Go on where a restart interrupted; with other authorities in the configuration, begin anew."""
        for _, value in await store.scan(_KIND):
            stored = _decode(value)
            if self._pin in stored.pins:
                self._pins, self._state = stored.pins, stored.followed
            else:
                log.warning("other directories are configured than were followed: beginning with those")

    def after(self, heads: Sequence[CertifiedHead], latest: float = math.inf) -> ChainState:
        """Return where heads lead; raise a `PeerError` if they are not of those that are believed.

        What one authority alone said of epochs after `latest` it may have taken back: it does not count.
        """
        state = self._state
        if state is not None and state.newest is not None and len(state.authorities.members) == 1:
            is_ahead = state.fork is None and decode_head(state.newest.head).epoch > latest
            state = msgspec.structs.replace(state, newest=None) if is_ahead else state
        if state is None:
            state = ChainState(Authorities.of(self._members, self._pin[1]))
        return follow(state, heads, self._network.id)

    def hand_over(self, handovers: Sequence[KeyHandover]) -> Change:
        """Follow one authority alone to another key; return what is to be kept. Raises as `handed_over`."""
        assert self._state is not None
        return self.move(functools.reduce(handed_over, handovers, self._state))

    def forked_by(self, shown: Sequence[CertifiedHead]) -> ChainState | None:
        """Return where two heads of one epoch lead that a quorum signed each, `None` if there are none.

        What does not hold is passed over.
        """
        assert self._state is not None
        chain, held = Chain(self._network.id, self._state), dict[int, CertifiedHead]()
        for certified in shown:
            try:
                head = chain.check(certified)
            except PeerError:
                continue
            known = held.setdefault(head.epoch, certified)
            if known.head != certified.head:
                return msgspec.structs.replace(self._state, fork=Fork(known, certified))
        return None

    def move(self, state: ChainState) -> Change:
        """Stand there from now on; return what is to be kept."""
        before = self.newest
        if before is not None and state.newest is not None:
            head = decode_head(state.newest.head)
            if head.authorities.wire != before.authorities.wire:
                change = before.change
                begins = head.epoch if change is None else min(head.epoch, change.epoch)
                self._turn = begins, before.authorities.wire
        changes = (decode_head(turn.head).change for turn in state.turns)
        sets = [*(change.authorities for change in changes if change is not None), state.authorities]
        pins = dict.fromkeys((*self._pins, *(one.signers for one in sets)))
        self._pins, self._state = tuple(pins)[-MAX_TURNS - 1 :], state
        return Change(_KIND, _KEY, encode(_Stored(self._pins, state)))
