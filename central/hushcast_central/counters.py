"""What is counted of the central system: at the server, at proxies, and at their users."""

from __future__ import annotations

from hushcast_runtime.counters import COMMON_COUNTERS

_BOTH = {
    "refused_form": "what was refused because its bytes, points or numbers did not hold",
    "refused_day": "requests for a day that is not open",
    "refused_quota": "what was refused because a cap was reached",
    "refused_unknown": "requests of pseudonyms that nobody introduced here, or that were forgotten",
    "strangers_dropped": "connections that had proved nothing and gave way to newer ones",
    "links_opened": "links whose handshake succeeded",
    "links_failed": "links that could not be opened or broke",
    **COMMON_COUNTERS,
}

_OF_OTHER_WIRES = {
    "links_of_other_wires": "of these, links whose other end speaks another wire: of another version"
}

SERVER_COUNTERS = {
    "publications_accepted": "publications that are on disk for their subscribers",
    "publications_repeated": "publications that came again and were answered as before",
    "publications_unmatched": "publications that nobody had asked for",
    "messages_kept": "publications that are kept for those who come later",
    "messages_kept_gave_way": "kept publications that gave way to newer ones, for want of room",
    "kept_asked_for": "days of topics that subscribers asked for",
    "kept_brought": "kept publications that went out for such questions",
    "deliveries_sent": "deliveries sent to proxies, repeats after a broken link included",
    "deliveries_acknowledged": "deliveries that subscribers acknowledged",
    "deliveries_expired": "deliveries given up because their day was over",
    "deliveries_over_share": "deliveries lost: too much waits for that pseudonym already",
    "introductions": "introductions of pseudonyms, repeated ones included",
    "attachments_lapsed": "attachments ended because acknowledgements did not come in time",
    "refused_proof": "requests and acknowledgements that were not by who has the pseudonym",
    "refused_taken": "requests for a pseudonym of another proxy",
    "refused_unlisted": "connections of whoever is no listed proxy",
    **_BOTH,
}
"""Of the server, by name, with its meaning."""

PROXY_COUNTERS = {
    "introductions": "introductions that the server took",
    "publications_passed": "publications that the server took",
    "deliveries_passed": "deliveries written to subscribers",
    "refused_stamp": "introductions without the stamp that this proxy asks for under load",
    "refused_closed": "requests that came while the server was not there",
    "refused_by_server": "requests that the server refused",
    "server_faults": "what the server sent that the protocol does not allow",
    **_OF_OTHER_WIRES,
    **_BOTH,
}
"""Of a proxy, by name, with its meaning."""

USER_COUNTERS = {
    "links_opened": "links whose handshake succeeded",
    "links_failed": "links that could not be opened or broke",
    **_OF_OTHER_WIRES,
    "pseudonyms_introduced": "pseudonyms that a proxy and the server took",
    "past_days_brought": "days gone by of subscriptions of which all that is kept has come",
    "deliveries_refused": "deliveries that did not open, or were not a message of their day",
    "answers_forged": "answers in the server's name that it did not give",
}
"""Of a daemon that publishes and subscribes; by name, with its meaning."""
