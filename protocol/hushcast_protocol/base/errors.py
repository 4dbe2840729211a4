"""Errors, split by whose fault they are: the local user's, the peer's, or the network's answer.

None carries a topic, payload, key or address in its text, except `UsageError`, which is shown only to the
person who typed the value.
"""

from __future__ import annotations

from typing import TypeVar

ErrorT = TypeVar("ErrorT", bound=BaseException)


class HushcastError(Exception):
    """Root of every error this project raises on purpose."""


class UsageError(HushcastError):
    """Something the local user gave cannot be used; the text says what and the way out."""


def unreadable(what: object, error: OSError) -> UsageError:
    """Return the error that says why something, as a file by its path, cannot be read."""
    return UsageError(f"{what} cannot be read: {error.strerror}")


def unraised(error: ErrorT) -> ErrorT:
    """Return an error like this that was never raised, to be kept: one that was holds the frames it passed.

    These hold what was refused, and whoever keeps the error: a circle, which is freed late.
    """
    like: ErrorT = type(error).__new__(type(error), *error.args)
    like.__dict__.update(error.__dict__)
    return like


class PeerError(HushcastError):
    """Bytes from the network were not what the protocol allows; the peer is at fault."""


class DecodeError(PeerError):
    """Bytes do not decode: truncated, oversized, wrong version, nested too deep, out of range."""


class AuthenticationError(PeerError):
    """Bytes decode but a signature, seal, key or hash does not hold."""


class Refusal(HushcastError):
    """A relay, directory or daemon declined a well-formed request, for a stated reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
