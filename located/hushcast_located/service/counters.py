"""What a provider counts and measures, never by subscription, place, word or topic."""

from __future__ import annotations

from hushcast_runtime.counters import COMMON_COUNTERS

PROVIDER_COUNTERS = {
    "batches_taken": "batches that came whole, are the owner's, and follow those before",
    "batches_repeated": "batches that had come before, or that others had overtaken",
    "batches_refused": "batches that are not as the owner signed them, go back in time, or are one of two",
    "batches_missing": "batches that did not come while others waited for them",
    "batches_answered": "batches of which every subscription has had its answer",
    "weights_taken": "tables of weights that came whole and are the owner's",
    "keys_taken": "times that a hand-over to another key of the owner came, or that its key was revoked",
    "feed_foreign": "messages on the feed's topic that somebody else than the owner signed, or nobody",
    "feed_refused": "messages of the owner that are no part of a batch or of a table",
    "requests_taken": "requests that began, renewed or ended a subscription",
    "requests_again": "requests that were taken before, and changed nothing",
    "requests_refused": "requests without a stamp, not sealed to this provider, or no requests",
    "requests_old": "requests that came after a later one for the same subscription",
    "requests_late": "requests for days that are over, or too far ahead",
    "requests_full": "requests that were too many",
    "answers_sent": "answers that the daemon has in its outbox",
    "weights_sent": "tables of weights that subscribers asked for, and that the daemon has in its outbox",
    "outbox_full": "times that the daemon took nothing, since its outbox was full",
    **COMMON_COUNTERS,
}
"""By name, with its meaning."""
PROVIDER_GAUGES = {
    "ready": "1 when the provider is ready, else 0",
    "network_ready": "1 when the daemon has answered, else 0",
    "subscriptions": "subscriptions that are answered",
    "batches_held": "batches that wait: for one before them, for their weights, or for their turn",
    "batch_newest": "number of the last batch that was answered to all; 0 before the first",
}
"""Every gauge with its meaning."""
