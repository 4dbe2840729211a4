"""What is counted of a network of brokers: at the brokers, and at daemons that publish and subscribe."""

from __future__ import annotations

from hushcast_runtime.counters import COMMON_COUNTERS

BROKER_COUNTERS = {
    "publications_accepted": "publications that the root took, and that are on disk",
    "publications_repeated": "publications that came to the root again and were answered as before",
    "messages_received": "messages that came from the parent, repeats included",
    "messages_forwarded": "messages sent to brokers below and to clients, repeats included",
    "messages_acknowledged": "messages that brokers below and clients acknowledged",
    "messages_unmatched": "messages that nobody here had asked for",
    "messages_excess": "messages that came for filters shown wider than what clients asked for",
    "messages_expired": "messages given up because their day was over",
    "messages_over_share": "messages lost: too much waits for that broker or client, or in all, already",
    "messages_rematched": "messages that waited for a broker that left the tree, and went another way",
    "messages_orphaned": "messages that waited for a broker that left the tree, and found no other way",
    "messages_handed_up": "messages for a broker that left the tree that the parent took back",
    "messages_returned": "messages that came back to the root, and that it keeps for whoever asks for them",
    "advertisements_sent": "advertisements sent to the parent",
    "advertisements_received": "advertisements that came from brokers below",
    "advertisements_refused": "advertisements that the parent refused; all is told it again later",
    "subscriptions": "subscriptions of clients taken, repeated ones included",
    "clients_joined": "clients that were not known before",
    "clients_forgotten": "clients that left nothing behind, or did not attach for long",
    "children_lapsed": "links ended because acknowledgements did not come in time",
    "trees_taken": "newer trees taken",
    "charters_taken": "newer charters of communities taken",
    "charters_clashed": "charters refused because their keeper signed two of one epoch",
    "charters_refused": "charters that the parent said and that do not hold, the clashed ones among them",
    "parent_faults": "what the parent sent that the protocol does not allow",
    "factors_learned": "factors that those above gave, by which rows of items are compared",
    "factors_refused": "questions for factors that somebody above did not answer",
    "statements_sent": "statements sent to the tomography service",
    "statements_refused": "statements that the tomography service refused",
    "levels_asked": "questions put to the tomography service about filters that too few here want",
    "levels_refused": "of these, those that it refused, and answers that did not hold",
    "refused_form": "what was refused because its bytes, words, filters or numbers did not hold",
    "refused_day": "publications for a day that is not open",
    "refused_quota": "what was refused because a cap was reached",
    "refused_stamp": "publications and new clients without the stamp that is asked for under load",
    "refused_bogus": "subscriptions refused because bogus filters or sources would deceive nobody",
    "refused_level": "subscriptions refused because too few stand behind the filter",
    "refused_unknown": "requests of clients that are not known, or not listed, here",
    "refused_community": "what only a member of a community could take, and this broker is none",
    "refused_tree": "items, and questions for factors, whose layers are for brokers that do not stand above",
    "refused_unlisted": "connections under a name that the tree does not list below this broker",
    "strangers_dropped": "connections that had proved nothing and gave way to newer ones",
    "links_opened": "links whose handshake succeeded, either way",
    "links_failed": "links that could not be opened or broke",
    **COMMON_COUNTERS,
}
"""Of a broker, by name, with its meaning."""

CLIENT_COUNTERS = {
    "deliveries_refused": "deliveries that were not a whole message of a day that is open",
    "trees_taken": "newer trees taken",
    "charters_taken": "newer charters of its community taken",
    "charters_clashed": "charters refused because their keeper signed two of one epoch",
    "charters_refused": "charters that the edge broker or the root said and that do not hold",
    "parent_faults": "what the edge broker sent that the protocol does not allow",
    "links_opened": "links whose handshake succeeded",
    "links_failed": "links that could not be opened or broke",
}
"""Of a daemon that publishes and subscribes; by name, with its meaning."""
