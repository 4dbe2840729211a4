"""The chain: the newest certified head that somebody holds, and which authorities may sign the next.

Authorities and daemons follow it alike. A head counts with the signatures of a quorum of the set in charge of
its epoch, and if it is newer than the one held. That set is the one known, or the one that a head announced a
day before it took over. Two certified heads of one epoch are a fork: the chain stops for good, and keeps them
as proof. A head that was certified but shown to nobody may be passed over by a later one that names an older
`previous`; that takes nothing back, since only the newest head counts. A chain goes by the outsides of heads
alone, so it is followed through wires that are not spoken here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from hushcast_protocol.authorities.authority_set import Authorities, AuthorityContact, Signers
from hushcast_protocol.authorities.evidence import Fork
from hushcast_protocol.authorities.head_inside import inside_of
from hushcast_protocol.authorities.heads import CertifiedHead, Head, check_certified, decode_head
from hushcast_protocol.base.errors import AuthenticationError
from hushcast_protocol.base.key_handovers import KeyHandover
from hushcast_protocol.base.roster import GENESIS
from hushcast_protocol.base.wire import PublicKey

MAX_HEADS = 48  # heads of the past that are compared: two days, as rosters
MAX_TURNS = 16  # heads that tell of a change of authorities, for those who were away: as hand-overs


class ChainState(msgspec.Struct, frozen=True, array_like=True):
    """All of a chain that has to outlast a restart."""

    authorities: Authorities
    """Of now; at first those that the configuration names, of which keys and quorum count."""
    since: int = 0
    """The first epoch that is theirs."""
    before: Authorities | None = None
    """Those just before, for their last heads."""
    turns: tuple[CertifiedHead, ...] = ()
    """For each set but the first the newest head held of the set before it, which announced it."""
    newest: CertifiedHead | None = None
    fork: Fork | None = None
    beginning: bytes = GENESIS
    """What the first head names as the one before: a single directory's last roster, if there was one."""


def handed_over(state: ChainState, handover: KeyHandover) -> ChainState:
    """Return where a follower stands once one authority alone took another key, which its old one signed.

    Raises `AuthenticationError` if the old key is not that of the one authority in charge.
    """
    before = state.authorities
    if before.keys != (handover.old,):
        raise AuthenticationError("a hand-over is not from the one authority that is known")
    fresh = AuthorityContact(handover.new, before.members[0].address)
    authorities = msgspec.structs.replace(before, members=(fresh,))
    return msgspec.structs.replace(state, authorities=authorities, since=handover.epoch, before=before)


@dataclass
class Chain:
    """One follower of a network's heads."""

    network: bytes
    state: ChainState
    _head: Head | None = field(init=False, default=None)
    _heads: dict[int, CertifiedHead] = field(init=False, default_factory=dict)
    _checked: dict[tuple[CertifiedHead, Signers], Head] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Go on with what was kept."""
        if self.state.newest is not None:
            self._head = decode_head(self.state.newest.head)
            self._heads[self._head.epoch] = self.state.newest

    @property
    def head(self) -> Head | None:
        """The newest head."""
        return self._head

    @property
    def epoch(self) -> int:
        """The epoch of the newest head, −1 before the first."""
        return -1 if self._head is None else self._head.epoch

    def in_charge(self, epoch: int) -> Authorities | None:
        """Return whose quorum signs for an epoch, as far as the heads held tell; `None` if they do not."""
        state = self.state
        if epoch < state.since:
            return state.before
        coming = self._head.change if self._head is not None else None
        return coming.authorities if coming is not None and epoch >= coming.epoch else state.authorities

    def named(self) -> dict[PublicKey, AuthorityContact]:
        """Return the authorities of just before, of now and to come by key, at their newest addresses.

        A key that was handed over is nobody's any more.
        """
        state, coming = self.state, self._head.change if self._head is not None else None
        before = None if self._was_handed_over() else state.before
        sets = (before, state.authorities, coming.authorities if coming is not None else None)
        return {member.key: member for one in sets if one is not None for member in one.members}

    def knows_set_of(self, head: Head) -> bool:
        """Tell whether a head is of the set that is in charge of its epoch, as far as is known here."""
        authorities = self.in_charge(head.epoch)
        return authorities is not None and authorities.signers == head.authorities.signers

    def check(self, certified: CertifiedHead) -> Head:
        """Return a head that a quorum of those in charge signed; `DecodeError`, `AuthenticationError`."""
        authorities = self.in_charge(decode_head(certified.head).epoch)
        if authorities is None:
            raise AuthenticationError("a head is from before the authorities that are known")
        checked = certified, authorities.signers
        if checked in self._checked:
            return self._checked[checked]
        head = check_certified(certified, self.network, authorities)
        if head.authorities.is_spoken:
            inside_of(head)  # what is held can be read, unless nobody could say so here
        if len(self._checked) >= MAX_HEADS:
            self._checked.clear()
        self._checked[checked] = head
        return head

    def take(self, certified: CertifiedHead) -> bool:
        """Follow a head; tell whether anything is new, which is to be kept. Raises as `check` does.

        What a key signed that was handed over says nothing new, however new it is: others may have the key.
        """
        head = self.check(certified)
        if head.epoch < self.state.since and self._was_handed_over():
            return False
        known = self._heads.get(head.epoch)
        if known is not None:
            if known.head == certified.head or self.state.fork is not None:
                return False
            self.state = msgspec.structs.replace(self.state, fork=Fork(known, certified))
            return True
        if self.state.fork is not None:
            return False
        is_newer = head.epoch > self.epoch
        if is_newer:
            self._move(head, certified)
        self._heads[head.epoch] = certified
        for epoch in sorted(self._heads)[:-MAX_HEADS]:
            del self._heads[epoch]
        return is_newer

    def after(self, epoch: int | None) -> Sequence[CertifiedHead]:
        """Return the heads by which somebody who holds that of an epoch comes to the newest, in order.

        Where there are two of one epoch, there are none but these.
        """
        if (fork := self.state.fork) is not None:
            return fork.first, fork.second
        held = -1 if epoch is None else epoch
        newest = () if self.state.newest is None else (self.state.newest,)
        way = (*self.state.turns, *newest)
        return [one for one in way if decode_head(one.head).epoch > held]

    def _was_handed_over(self) -> bool:
        """Tell whether the one authority of now has its place from the one before, and not by a head."""
        state = self.state
        if state.before is None:
            return False
        last = state.turns[-1] if state.turns else None
        return last is None or decode_head(last.head).authorities.signers != state.before.signers

    def _move(self, head: Head, certified: CertifiedHead) -> None:
        state, last = self.state, self._head
        if head.authorities.signers != state.authorities.signers:
            assert state.newest is not None
            assert last is not None
            assert last.change is not None
            state = msgspec.structs.replace(
                state,
                since=last.change.epoch,
                before=state.authorities,
                turns=(*state.turns, state.newest)[-MAX_TURNS:],
            )
        self.state = msgspec.structs.replace(state, authorities=head.authorities, newest=certified)
        self._head = head
