"""What an owner counts and measures, never by message, place or word."""

from __future__ import annotations

from hushcast_runtime.counters import COMMON_COUNTERS

OWNER_COUNTERS = {
    "messages_taken": "messages that wait for a batch, on disk",
    "messages_again": "messages that were taken before, with the same id and the same content",
    "messages_signed": "messages that are in a batch",
    "alerts_without_place": "entries of alert files that name no place, and are in no batch",
    "alerts_not_for_all": "alerts that are exercises, tests or drafts, or are for some alone",
    "input_refused": "lines, files and messages of the topic that are no messages",
    "batches_signed": "batches that were signed",
    "batches_published": "batches that the daemon has in its outbox",
    "weights_signed": "tables of weights that were signed",
    "outbox_full": "times that the daemon took nothing, since its outbox was full",
    **COMMON_COUNTERS,
}
"""By name, with its meaning."""
OWNER_GAUGES = {
    "ready": "1 when the owner is ready, else 0",
    "network_ready": "1 when the daemon has answered, else 0",
    "messages_waiting": "messages that wait for a batch",
    "batch_signed": "number of the last batch that was signed; 0 before the first",
    "batch_published": "number of the last batch that the daemon has in its outbox",
}
"""Every gauge with its meaning."""
