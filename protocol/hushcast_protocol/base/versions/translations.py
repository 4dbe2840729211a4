"""Translations: what a wire says and does otherwise than the newest, whose kinds are all that is known.

A translation is of one wire, whole, and goes when that wire does. Kinds are told apart by their tags, so a
kind that changes gets a tag of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.versions.manner import NEWEST, Manner
from hushcast_protocol.base.wire import Wire, decoder, encode

Translate = Callable[[Any], Wire | None]
"""Says in one wire what was said in another; `None` where that has no words for it: it is passed over."""

_fields: Callable[[bytes], tuple[msgspec.Raw, ...]] = msgspec.msgpack.Decoder(tuple[msgspec.Raw, ...]).decode
_text: Callable[[msgspec.Raw], str] = msgspec.msgpack.Decoder(str).decode


class Translation:
    """Between one wire and the newest."""

    __slots__ = ("_down", "_older", "_up", "manner")

    def __init__(
        self,
        up: Mapping[type[Wire], Translate],
        down: Mapping[type[Wire], Translate],
        manner: Manner = NEWEST,
    ) -> None:
        """`up` is by kinds that this wire has and the newest has not; `down` is the other way round.

        Kinds that are named in neither are the same in both. `manner` is this wire's.
        """
        self.manner = manner
        self._down = dict(down)
        self._up: dict[str, Callable[[bytes], Wire | None]] = {_tag_of(kind): _refuse for kind in down}
        self._up |= {_tag_of(kind): _reader(kind, translate) for kind, translate in up.items()}
        self._older = frozenset(_tag_of(kind) for kind in up)

    def up(self, data: bytes) -> bytes | None:
        """Return what was said in this wire as the newest says it, `None` if it does not.

        It is not checked further than the kind of this wire asks. Raises `DecodeError`.
        """
        if not self._up:
            return data
        read = self._up.get(_tag(data))
        if read is None:
            return data
        said = read(data)
        return None if said is None else encode(said)

    def all_up(self, frames: Iterable[bytes]) -> Iterable[bytes | None]:
        """Return what `up` does of each."""
        return map(self.up, frames) if self._up else frames

    def is_older(self, data: bytes) -> bool:
        """Tell whether something is of a kind that this wire has and the newest has not."""
        return bool(self._older) and _tag(data) in self._older

    def down(self, said: Wire) -> Wire | None:
        """Return what this wire says for one of the newest kinds, `None` if it has no words for it."""
        translate = self._down.get(type(said))
        return said if translate is None else translate(said)

    def all_down(self, said: Sequence[Wire]) -> Sequence[Wire]:
        """Return what this wire says for several, in their order, without what it has no words for."""
        if not self._down:
            return said
        return [frame for one in said if (frame := self.down(one)) is not None]


UNCHANGED = Translation({}, {})
"""That of the newest wire."""


def _reader(kind: type[Wire], translate: Translate) -> Callable[[bytes], Wire | None]:
    decode = decoder(kind, "frame of another wire", sys.maxsize)  # the link that brought it has a bound
    return lambda data: translate(decode(data))


def _refuse(data: bytes) -> Wire | None:
    """Refuse what this wire does not have, as who speaks no other does: else it would tell the release."""
    raise DecodeError("a frame is of another wire than its link")


def _tag_of(kind: type[Wire]) -> str:
    tag = kind.__struct_config__.tag
    assert isinstance(tag, str)
    return tag


def _tag(data: bytes) -> str:
    """Return a frame's tag, however its sender encoded it; none where there is none."""
    try:
        return _text(_fields(data)[0])
    except (msgspec.MsgspecError, ValueError, RecursionError, IndexError):
        return ""
