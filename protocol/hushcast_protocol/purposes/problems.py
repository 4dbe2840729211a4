"""What can be wrong with a vocabulary, a grant, and a message sealed for purposes: fixed names."""

from __future__ import annotations

from enum import StrEnum

from hushcast_protocol.base.errors import PeerError


class Problem(StrEnum):
    """Why something cannot be used."""

    FORM = "form"
    """It is cut off, too long, or out of bounds."""
    SIGNATURE = "signature"
    """Its issuer did not sign it."""
    OTHER_ISSUER = "other issuer"
    """Somebody else issued it."""
    OTHER_READER = "other reader"
    """The grant is for another reader's key."""
    OLD_KEYS = "old keys"
    """The grant is of another series of keys than the vocabulary."""
    OLDER = "older"
    """A newer version of the vocabulary is known."""
    FORKED = "forked"
    """The issuer signed two vocabularies with one version."""
    NOT_YET = "not yet"
    """Its first epoch has not begun."""
    EXPIRED = "expired"
    """Its last epoch is over."""
    NOT_GRANTED = "not granted"
    """No grant that is held opens the message."""
    CHANGED = "changed"
    """A key is granted, and the message is not as its writer sealed it."""


_WORDS = {
    Problem.FORM: "it is cut off, or none",
    Problem.SIGNATURE: "its issuer did not sign it",
    Problem.OTHER_ISSUER: "another issuer signed it",
    Problem.OTHER_READER: "it is for another reader's key",
    Problem.OLD_KEYS: "the vocabulary has other keys by now",
    Problem.OLDER: "a newer version is known",
    Problem.FORKED: "its issuer signed two of one version",
    Problem.NOT_YET: "its first epoch has not begun",
    Problem.EXPIRED: "its last epoch is over",
    Problem.NOT_GRANTED: "no grant opens it",
    Problem.CHANGED: "it was changed on its way",
}


class NotUsable(PeerError):
    """A vocabulary, a grant or a message cannot be used."""

    def __init__(self, what: str, problem: Problem) -> None:
        """`what` names its kind, as "grant"."""
        super().__init__(f"the {what} cannot be used: {_WORDS[problem]} ({problem})")
        self.problem = problem
