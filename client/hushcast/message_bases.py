"""What all messages of the control socket have in common: a request's number, and what they pass over."""

from __future__ import annotations

from typing import Annotated

import msgspec

Number = Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]
"""A request's on its connection; free again when the request has ended."""


class StrictMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a daemon does not know of it, it must not pass over: it would do something else than was meant."""


class StrictRequest(StrictMessage, frozen=True, kw_only=True):
    """What is asked under a number."""

    request: Number = 0


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What a program does not know of it, it passes over: it asked for nothing of that."""

    request: Number = 0
