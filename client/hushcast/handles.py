"""Handles: by what a subscription is named where its topic is not to be said."""

from __future__ import annotations

import re

_HANDLE = re.compile(r"%[0-9a-f]{8}\Z")  # no letter of it means anything to a shell


def handle_of(name: bytes) -> str:
    """Return the handle of the subscription with this name, 4 bytes or more that are random."""
    return f"%{name[:4].hex()}"


def is_handle(text: str) -> bool:
    """Tell whether a text in a topic's place is a handle."""
    return _HANDLE.match(text) is not None
