"""What can be wrong with an answer: a fixed list of names, told to whoever asked."""

from __future__ import annotations

from enum import StrEnum

from hushcast_protocol.base.errors import AuthenticationError


class AnswerProblem(StrEnum):
    """Why an answer does not hold."""

    FORM = "form"
    """It is no answer: cut off, too long, or out of bounds."""
    OTHER_SUBSCRIPTION = "other subscription"
    """It is the answer to another subscription."""
    SIGNATURE = "signature"
    """The batch is not signed by this owner."""
    OLD_ROOT = "old root"
    """The batch is one that was answered for before."""
    MISSING_INTERVAL = "missing interval"
    """Batches between the one before and this one are missing."""
    FORKED = "forked"
    """The owner signed two batches, or two tables, with one number."""
    BACK_IN_TIME = "back in time"
    """The batch begins before the one before it ended."""
    WEIGHTS = "weights"
    """The weights, or the greatest distance, are not those of the batch."""
    OTHER_INTERVAL = "other interval"
    """A message, or the whole proof, is of another interval."""
    LEFT_OUT = "left out"
    """A message that may be wanted is missing, or hidden in what is not shown."""
    CHANGED = "changed"
    """A message, or what is said of one, is not as the owner signed it."""
    INVENTED = "invented"
    """There is a message that the owner did not sign."""
    PADDED = "padded"
    """There is more in it than was asked for."""
    REVOKED = "revoked"
    """The owner revoked the key that would have signed it: the feed has ended."""
    SILENT = "silent"
    """The next interval is over, and nothing has come: of a feed that is followed, never of an answer."""


class InvalidAnswer(AuthenticationError):
    """An answer, or a batch in it, does not hold."""

    def __init__(self, problem: AnswerProblem) -> None:
        super().__init__(f"this does not hold: {problem}")
        self.problem = problem
