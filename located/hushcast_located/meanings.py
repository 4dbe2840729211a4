"""What problems of answers, and moments of intervals, mean for people."""

from __future__ import annotations

from datetime import UTC, datetime

from hushcast_protocol.spatial.problems import Problem

MEANING = {
    Problem.FORM: "it is cut off, too long, or no answer at all",
    Problem.OTHER_SUBSCRIPTION: "it answers another subscription",
    Problem.SIGNATURE: "its batch is not signed by this owner",
    Problem.OLD_ROOT: "its batch is not newer than the one before",
    Problem.MISSING_INTERVAL: "batches before it are missing",
    Problem.FORKED: "the owner signed another batch or table with this number",
    Problem.BACK_IN_TIME: "its batch begins before the one before it ended",
    Problem.WEIGHTS: "its weights, or greatest distance, are not those of the batch",
    Problem.OTHER_INTERVAL: "something in it is of another interval",
    Problem.LEFT_OUT: "a message that may be wanted is missing",
    Problem.CHANGED: "something in it is not as the owner signed it",
    Problem.INVENTED: "there is a message in it that the owner did not sign",
    Problem.PADDED: "there is more in it than was asked for",
    Problem.SILENT: "the time of another interval is over, and nothing has come",
}


def when(seconds: int) -> str:
    """Return when an interval begins, of Unix seconds; `?` for what no calendar has."""
    if seconds >= 2**37:
        return "?"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
