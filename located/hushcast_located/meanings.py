"""What problems of answers, and moments of intervals, mean for people."""

from __future__ import annotations

from datetime import UTC, datetime

from hushcast_protocol.spatial.answer_problems import AnswerProblem

MEANING = {
    AnswerProblem.FORM: "it is cut off, too long, or no answer at all",
    AnswerProblem.OTHER_SUBSCRIPTION: "it answers another subscription",
    AnswerProblem.SIGNATURE: "its batch is not signed by this owner",
    AnswerProblem.OLD_ROOT: "its batch is not newer than the one before",
    AnswerProblem.MISSING_INTERVAL: "batches before it are missing",
    AnswerProblem.FORKED: "the owner signed another batch or table with this number",
    AnswerProblem.BACK_IN_TIME: "its batch begins before the one before it ended",
    AnswerProblem.WEIGHTS: "its weights, or greatest distance, are not those of the batch",
    AnswerProblem.OTHER_INTERVAL: "something in it is of another interval",
    AnswerProblem.LEFT_OUT: "a message that may be wanted is missing",
    AnswerProblem.CHANGED: "something in it is not as the owner signed it",
    AnswerProblem.INVENTED: "there is a message in it that the owner did not sign",
    AnswerProblem.PADDED: "there is more in it than was asked for",
    AnswerProblem.REVOKED: "the owner revoked its key: the feed has ended, ask the owner for another",
    AnswerProblem.SILENT: "the time of another interval is over, and nothing has come",
}


def when(seconds: int) -> str:
    """Return when an interval begins, of Unix seconds; `?` for what no calendar has."""
    if seconds >= 2**37:
        return "?"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
