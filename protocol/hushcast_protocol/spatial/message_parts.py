"""Parts: what is too long for one message, cut for the way and put together again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated

import msgspec

from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.wire import Bytes32, Wire, decoder, encode

PART = 255 * 1024  # bytes of a whole in one part; with what stands around it a payload of a message
MAX_PARTS = 68  # of one whole: an answer of the largest size, 16 MiB
MAX_BEGUN = 4  # wholes of which parts are awaited at once: the oldest makes room, and has to come again
MAX_APART = 512  # messages between the first part of a whole and its last; then nobody waits for it


class MessagePart(Wire, frozen=True, tag="located-part/1"):
    """One part of a whole, which is named by its hash: the `at`th, from 0, of so many."""

    whole: Bytes32
    at: Annotated[int, msgspec.Meta(ge=0, lt=MAX_PARTS)]
    of: Annotated[int, msgspec.Meta(ge=1, le=MAX_PARTS)]
    data: Annotated[bytes, msgspec.Meta(max_length=PART)]


_decode_part: Callable[[bytes], MessagePart] = decoder(MessagePart, "part", PART + 128)


def cut(whole: bytes) -> list[bytes]:
    """Return the payloads of the messages that carry some bytes: at most `MAX_PARTS * PART` of them."""
    pieces = [whole[start : start + PART] for start in range(0, len(whole), PART)] or [b""]
    name = digest(Domain.LOCATED_PART, whole)
    return [encode(MessagePart(name, at, len(pieces), piece)) for at, piece in enumerate(pieces)]


@dataclass
class _Begun:
    since: int
    parts: dict[int, bytes] = field(default_factory=dict)


class Assembly:
    """Puts wholes together from parts that come in any order, some of them twice."""

    def __init__(self) -> None:
        self._begun: OrderedDict[tuple[bytes, int], _Begun] = OrderedDict()

    @property
    def is_waiting(self) -> bool:
        """Whether a part has come of a whole that is not complete."""
        return bool(self._begun)

    @property
    def oldest(self) -> int | None:
        """The least cursor of a part that waits for others: what came before it is needed no more."""
        return min((one.since for one in self._begun.values()), default=None)

    def take(self, payload: bytes, cursor: int = 0) -> bytes | None:
        """Take the payload of a message; return the whole that it completes, if it does.

        `cursor` is the message's place among those of its subscription. Raises `DecodeError` for what is no
        part, or where the parts make another whole than they say.
        """
        self._forget(cursor)
        part = _decode_part(payload)
        if part.at >= part.of:
            raise DecodeError("a part stands behind the last one")
        name = (part.whole, part.of)
        begun = self._begun.setdefault(name, _Begun(cursor))
        begun.parts[part.at] = part.data
        if len(begun.parts) < part.of:
            if len(self._begun) > MAX_BEGUN:
                self._begun.popitem(last=False)
            return None
        del self._begun[name]
        whole = b"".join(data for _, data in sorted(begun.parts.items()))
        if digest(Domain.LOCATED_PART, whole) != part.whole:
            raise DecodeError("parts do not make the whole that they say")
        return whole

    def _forget(self, cursor: int) -> None:
        """Give up wholes whose other parts had their time."""
        for name in [name for name, one in self._begun.items() if cursor - one.since > MAX_APART]:
            del self._begun[name]
