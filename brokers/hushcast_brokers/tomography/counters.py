"""What the tomography service counts and gauges: numbers alone, by no broker, filter or topic."""

from __future__ import annotations

from hushcast_runtime.counters import COMMON_COUNTERS

TOMOGRAPHY_COUNTERS = {
    "statements_taken": "statements of brokers that were taken",
    "statements_forged": "statements refused: not signed by the broker whose link they came over",
    "statements_stale": "statements refused: of another epoch, an earlier number, or no longer valid",
    "statements_contradicted": "statements refused: their broker signed two with one number",
    "statements_unvouched": "statements refused: sources that the broker may not vouch for",
    "statements_refused": "statements refused for other reasons: their form, a broker not listed, no room",
    "questions_answered": "questions answered with a signature, those of watches included",
    "questions_refused": "questions that cannot be asked so, or for which there was no room",
    "questions_unpaid": "questions without the stamp that is asked for under load",
    "news_told": "answers sent to watches because they changed or were over",
    "trees_taken": "newer trees taken",
    "refused_unlisted": "connections under a name that the tree does not list",
    "refused_form": "connections ended because their bytes did not hold",
    "refused_quota": "connections that a cap refused",
    "strangers_dropped": "connections that had proved nothing and gave way to newer ones",
    "links_opened": "links whose handshake succeeded",
    **COMMON_COUNTERS,
}
"""By name, with its meaning."""

TOMOGRAPHY_GAUGES = {
    "tree_version": "the version of the tree that it holds",
    "brokers_listed": "brokers in that tree",
    "brokers_connected": "of these, those whose link is open",
    "statements_held": "filters stated and valid, each once for each broker",
    "sources_bogus": "bogus sources stated, each at each filter",
    "watches": "questions that brokers watch",
    "largest_k": "the largest k that was asked for lately",
    "difficulty": "bits of the stamp that it asks of people; 0 without load",
}
"""Every gauge with its meaning."""

_COUNTED_AS = {
    "forged": "statements_forged",
    "stale": "statements_stale",
    "contradicted": "statements_contradicted",
    "not-edge": "statements_unvouched",
    "another's": "statements_unvouched",
    "cap": "statements_unvouched",
}


def counter_of(reason: str) -> str:
    """Return the counter of statements refused for a reason."""
    return _COUNTED_AS.get(reason, "statements_refused")
