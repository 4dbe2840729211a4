"""What can be wrong with a vocabulary, a grant, and a message sealed for purposes: fixed names."""

from __future__ import annotations

from enum import StrEnum

from hushcast_protocol.base.errors import PeerError


class PurposeProblem(StrEnum):
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
    PurposeProblem.FORM: "it is cut off, or none",
    PurposeProblem.SIGNATURE: "its issuer did not sign it",
    PurposeProblem.OTHER_ISSUER: "another issuer signed it",
    PurposeProblem.OTHER_READER: "it is for another reader's key",
    PurposeProblem.OLD_KEYS: "the vocabulary has other keys by now",
    PurposeProblem.OLDER: "a newer version is known",
    PurposeProblem.FORKED: "its issuer signed two of one version",
    PurposeProblem.NOT_YET: "its first epoch has not begun",
    PurposeProblem.EXPIRED: "its last epoch is over",
    PurposeProblem.NOT_GRANTED: "no grant opens it",
    PurposeProblem.CHANGED: "it was changed on its way",
}


class PurposeError(PeerError):
    """A vocabulary, a grant or a message cannot be used."""

    def __init__(self, what: str, problem: PurposeProblem) -> None:
        """`what` names its kind, as "grant"."""
        super().__init__(f"the {what} cannot be used: {_WORDS[problem]} ({problem})")
        self.problem = problem
