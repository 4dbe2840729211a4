"""Charters: who is in a community for one of its epochs, and the epoch's key, sealed to each of them.

The keeper signs them. A charter is public: it goes over every link of the network. Each has a higher epoch
than the one before; two of one epoch are evidence against the keeper, and the second is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import msgspec

from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.crypto.sealed_box import SEALED_BOX, open_box, seal_box
from hushcast_protocol.base.crypto.secrets import AgreementKey, EpochKey, Randomness, Seed
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, Signed, check, sign
from hushcast_protocol.base.errors import AuthenticationError, DecodeError
from hushcast_protocol.base.wire import Bytes32, Counter, PublicKey, Wire, decoder

MAX_MEMBERS = (
    1024  # of one community: each epoch's charter, which has 126 bytes of each, goes over every link
)
MAX_COMMUNITIES = 64  # of a network: each daemon holds a charter of each, 8 MB at most
MAX_CHARTER = MAX_MEMBERS * 128 + 512  # bytes

_SEALED = SEALED_BOX + EpochKey.LENGTH


class CharterMember(Wire, frozen=True, tag="admitted"):
    """A member: its X25519 key, and the epoch's key sealed to that."""

    key: Bytes32
    sealed: Annotated[bytes, msgspec.Meta(min_length=_SEALED, max_length=_SEALED)]


class CharterBody(Wire, frozen=True, tag="charter/1"):
    """What a keeper signs; the community is named by the keeper's key."""

    network: Bytes32
    community: PublicKey
    epoch: Counter
    begins: Counter
    """Unix seconds from which on members publish under this epoch; they subscribe under it as they hear."""
    members: Annotated[tuple[CharterMember, ...], msgspec.Meta(max_length=MAX_MEMBERS)]


@dataclass(frozen=True)
class Charter:
    """A charter whose signature and form were checked."""

    signed: Signed
    community: PublicKey
    epoch: int
    begins: int
    members: dict[Bytes32, bytes]
    """By a member's key: the epoch's key, sealed to it."""

    @cached_property
    def digest(self) -> bytes:
        """Hash of the signed bytes."""
        return digest(Domain.CHARTER, self.signed.body)


_decode: Callable[[bytes], CharterBody] = decoder(CharterBody, "charter", MAX_CHARTER)


def sign_charter(
    keeper: Seed, network: bytes, epoch: int, begins: int, members: Iterable[Bytes32], randomness: Randomness
) -> Signed:
    """Draw an epoch's key and sign a charter that has it for these members, each named once.

    Raises `AuthenticationError` where a member's key is none, and `ValueError` for more than `MAX_MEMBERS`.
    """
    listed = sorted(set(members))  # in no order that tells who came when
    if len(listed) > MAX_MEMBERS:
        raise ValueError("too many members")
    key = EpochKey.draw(randomness).reveal()
    admitted = tuple(CharterMember(member, seal_box(member, key, randomness)) for member in listed)
    body = CharterBody(network, keeper.public(), epoch, begins, admitted)
    return sign(keeper, SignaturePurpose.CHARTER, body)


def check_charter(signed: Signed, network: bytes) -> Charter:
    """Return the charter if its keeper signed it, and it is of this network.

    Raises `DecodeError` or `AuthenticationError`.
    """
    body = _decode(signed.body)
    check(body.community, SignaturePurpose.CHARTER, signed.body, signed.signature)
    if body.network != network:
        raise DecodeError("a charter is of another network")
    members = {one.key: one.sealed for one in body.members}
    if len(members) < len(body.members):
        raise DecodeError("a charter lists a member twice")
    return Charter(signed, body.community, body.epoch, body.begins, members)


def begins(signed: Signed) -> int:
    """Return when the epoch of a charter begins, in Unix seconds; raise `DecodeError`."""
    return _decode(signed.body).begins


def check_newer(charter: Charter, held: Charter | None) -> bool:
    """Tell whether a charter is newer than the one held of its community.

    Raises `AuthenticationError` if the keeper signed two of one epoch.
    """
    if held is None or charter.epoch > held.epoch:
        return True
    if charter.epoch == held.epoch and charter.digest != held.digest:
        raise AuthenticationError("a keeper signed two charters of one epoch")
    return False


def epoch_key(charter: Charter, own: AgreementKey) -> EpochKey | None:
    """Return the epoch's key for a member, else `None`; `AuthenticationError` where its box does not open."""
    sealed = charter.members.get(own.public())
    if sealed is None:
        return None
    return EpochKey(open_box(own.private_key(), sealed))
