"""What is inside the seal: a message with the digest by which it can be withdrawn, or a withdrawal.

A writer draws a lock, and each message holds the lock's digest. To withdraw its messages it publishes the
lock: nobody else can, nobody need know who it is, and a withdrawal that is repeated does nothing more. What
it publishes from then on has another lock.
"""

from __future__ import annotations

from typing import NamedTuple

from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.crypto.secrets import Randomness, Secret
from hushcast_protocol.purposes.purpose_problems import PurposeError, PurposeProblem

LOCK = 32  # bytes, of a lock and of its digest
BESIDE = 1 + LOCK  # bytes beside the content
_MESSAGE, _WITHDRAWAL = b"m", b"w"


class LockSecret(Secret):
    """What a writer's locks come from."""

    __slots__ = ()


class InnerContent(NamedTuple):
    """What was inside: `content`, or with a `lock` none."""

    content: bytes
    withdrawn_by: bytes
    """The digest of the lock that withdraws it; of a withdrawal, what it withdraws."""
    lock: bytes = b""

    def __repr__(self) -> str:
        """Show nothing of it."""
        return "InnerContent(...)"


def lock_of(secret: LockSecret, owner: str, topic: str, generation: int) -> bytes:
    """Return the lock of an owner's messages on a topic; each withdrawal begins another generation."""
    place = (owner.encode(), topic.encode(), generation.to_bytes(8, "big"))
    return digest(Domain.PURPOSE_LOCK, *place, key=secret.reveal(), size=LOCK)


def digest_of(lock: bytes) -> bytes:
    """Return the digest that messages hold which the lock withdraws."""
    return digest(Domain.PURPOSE_LOCKED, lock, size=LOCK)


def write_message(content: bytes, withdrawn_by: bytes | None, randomness: Randomness) -> bytes:
    """Return a message; one that nobody can withdraw has a random digest, which no lock has."""
    return _MESSAGE + (randomness(LOCK) if withdrawn_by is None else withdrawn_by) + content


def write_withdrawal(lock: bytes) -> bytes:
    """Return what withdraws all messages with the digest of this lock."""
    return _WITHDRAWAL + lock


def read_inside(data: bytes) -> InnerContent:
    """Return what was sealed; raise `PurposeError` where it is neither."""
    kind, following, content = data[:1], data[1:BESIDE], data[BESIDE:]
    if len(following) == LOCK and kind == _MESSAGE:
        return InnerContent(content, following)
    if len(following) == LOCK and kind == _WITHDRAWAL and not content:
        return InnerContent(b"", digest_of(following), following)
    raise PurposeError("message", PurposeProblem.FORM)
