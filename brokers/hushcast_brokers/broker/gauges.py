"""Gauges of brokers: numbers alone, by no client, broker, filter or topic."""

from __future__ import annotations

BROKER_GAUGES = {
    "brokers_listed": "brokers in the tree that this broker holds, itself included",
    "brokers_below": "of these, those whose parent it is",
    "brokers_connected": "of those below it, those whose link is open",
    "parent_connected": "1 while the link to its parent is open, else 0; the root has none",
    "tomography_connected": "1 while the tomography service takes its statements, else 0",
    "levels_watched": "questions about filters that the tomography service answers anew when that changes",
    "tree_version": "the version of the tree that it holds",
    "clients": "clients that an edge broker knows",
    "clients_connected": "of these, those whose link is open",
    "filters": "filters that are kept here, for brokers and clients below",
    "filters_shown": "filters that it has shown to its parent",
    "messages_waiting": "messages on its disk for brokers and clients below, each counted once for each",
    "messages_waiting_bytes": "bytes of these, each body counted once",
    "kept_bytes": "bytes of publications that the root keeps for those who come later, 640 beside each",
    "difficulty": "bits of the stamp that it asks of newcomers; 0 without load",
}
"""Every gauge with its meaning; brokers leave out those that they have no value for."""
