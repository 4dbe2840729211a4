"""An owner's keys: an old one signs the next one, or that none follows; that goes with each answer.

A subscriber knows one key, from elsewhere. From the batch on that a hand-over names, the next key signs, and
nothing that the old one signs counts any more: so a hand-over also revokes. An owner whose key has leaked
signs by it that no key follows. That holds against a hand-over, too, whichever was heard first: who has an
owner's old key can end its feed, for whoever hears him, and not go on with it in the owner's place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Self

import msgspec

from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, Signed, check, sign
from hushcast_protocol.base.errors import AuthenticationError, DecodeError
from hushcast_protocol.base.wire import Bytes32, PublicKey, Wire, decoder
from hushcast_protocol.spatial.answer_problems import AnswerProblem, InvalidAnswer

MAX_OWNER_KEYS = 16  # hand-overs that are carried: one a year for longer than a key should be known
MAX_OWNER_HANDOVER = 256  # bytes of one; ours have some 130


class OwnerHandover(Wire, frozen=True, tag="located-handover/1"):
    """What an owner's old key signs: the last batch that it signed, and the key that signs the next ones.

    No key (`new` is nil) revokes the old one: the feed ends with that batch.
    """

    old: PublicKey
    new: PublicKey | None
    last: Annotated[int, msgspec.Meta(ge=1, lt=2**48)]
    batch: Bytes32


Handovers = Annotated[tuple[Signed, ...], msgspec.Meta(max_length=MAX_OWNER_KEYS)]
"""Hand-overs of one owner, each from the key of the one before; the oldest may be missing."""

decode_handovers: Callable[[bytes], tuple[Signed, ...]] = decoder(
    Handovers, "hand-overs of an owner", MAX_OWNER_KEYS * 2 * MAX_OWNER_HANDOVER
)
_decode: Callable[[bytes], OwnerHandover] = decoder(OwnerHandover, "hand-over", MAX_OWNER_HANDOVER)


def sign_handover(seed: Seed, new: PublicKey | None, last: int, batch: bytes) -> Signed:
    """Sign by an owner's old key which one follows after a batch of this number and digest, if any does."""
    return sign(seed, SignaturePurpose.LOCATED_HANDOVER, OwnerHandover(seed.public(), new, last, batch))


def check_handovers(given: Sequence[Signed]) -> tuple[OwnerHandover, ...]:
    """Return what hand-overs say; raise `DecodeError` where one does not follow the one before.

    Raises `InvalidAnswer` where the old key did not sign it.
    """
    found: list[OwnerHandover] = []
    for one in given:
        body = _decode(one.body)
        if found and (found[-1].new != body.old or found[-1].last >= body.last):
            raise DecodeError("a hand-over of an owner does not follow the one before")
        if body.new in (body.old, *(each.old for each in found)):
            raise DecodeError("an owner hands over to a key that it had before")
        try:
            check(body.old, SignaturePurpose.LOCATED_HANDOVER, one.body, one.signature)
        except AuthenticationError:
            raise InvalidAnswer(AnswerProblem.SIGNATURE) from None
        found.append(body)
    return tuple(found)


@dataclass(frozen=True)
class OwnerKeys:
    """The key by which a feed is known, and the hand-overs that were heard of its owner."""

    root: PublicKey
    signed: tuple[Signed, ...] = ()
    """Checked, the oldest first."""
    said: tuple[OwnerHandover, ...] = ()
    """What they say."""

    @classmethod
    def read(cls, root: PublicKey, signed: Sequence[Signed]) -> Self:
        """Return the keys of an owner that is known by one of them; raise as `extended` does."""
        return cls(root).extended(signed)

    @property
    def current(self) -> PublicKey | None:
        """The key that signs now; `None` once none does."""
        return self._signs(2**48)

    @property
    def newest(self) -> PublicKey:
        """The key that signs now, or the one that was revoked."""
        return self.current or self.said[-1].old

    @property
    def all(self) -> set[bytes]:
        """Every key that the owner has or had, as far as known."""
        return {self.root, *(one.old for one in self.said), *(one.new for one in self.said if one.new)}

    @property
    def end(self) -> int | None:
        """The number of the last batch of a feed whose key was revoked."""
        return self.said[-1].last if self.current is None else None

    def of(self, number: int) -> PublicKey:
        """Return the key that signs a batch; raise `InvalidAnswer` where none may."""
        if (key := self._signs(number)) is None:
            raise InvalidAnswer(AnswerProblem.REVOKED)
        return key

    def _signs(self, number: int) -> PublicKey | None:
        key = self.root
        for one in self.said:
            if one.old == key and number > one.last:
                if one.new is None:
                    return None
                key = one.new
        return key

    def is_last(self, number: int, batch: bytes) -> bool:
        """Tell whether a batch of this number and digest may be: a key signed which was its last."""
        return all(one.last != number or one.batch == batch for one in self.said)

    def extended(self, given: Sequence[Signed]) -> Self:
        """Return these keys with others that somebody tells of, which may be no news, or be of another owner.

        Raises `InvalidAnswer` where they contradict what is known, or are not signed, and `DecodeError`.
        """
        if not given or tuple(given) == self.signed:
            return self
        there = {body.old: (body, one) for body, one in zip(self.said, self.signed, strict=True)}
        for body, one in zip(check_handovers(given), given, strict=True):
            known = there.get(body.old)
            if known is not None and known[0] != body and body.new is not None:
                raise InvalidAnswer(AnswerProblem.FORKED)
            if known is None or known[0].new is not None:
                there[body.old] = body, one
        return self._with(there)

    def _with(self, there: dict[bytes, tuple[OwnerHandover, Signed]]) -> Self:
        """Return these keys by all hand-overs that hang together with the one that is known."""
        before = {body.new: old for old, (body, _) in there.items() if body.new is not None}
        at = self.root
        while (old := before.get(at)) is not None:
            at = old
        found: list[tuple[OwnerHandover, Signed]] = []
        while (one := there.pop(at, None)) is not None:
            found.append(one)
            if one[0].new is None:
                break
            at = one[0].new
        root = self.root
        for gone, _ in found[:-MAX_OWNER_KEYS]:
            root = gone.new if gone.old == root and gone.new is not None else root
        found = found[-MAX_OWNER_KEYS:]
        return type(self)(root, tuple(signed for _, signed in found), tuple(body for body, _ in found))
