"""What a directory counts."""

from __future__ import annotations

DIRECTORY_COUNTERS = {
    "relays_registered": "descriptors of relays that were taken",
    "relays_carried": "relays that did not renew in a flood and stay in a roster because they were reached",
    "registrations_refused": "descriptors that were not, whatever the reason",
    "newcomers_turned_away": "of these, unlisted relays that came while too many others waited",
    "rosters_asked_for": "questions for a roster",
    "heads_asked_for": "questions for heads alone, of daemons that do not speak what the network speaks",
    "parts_asked_for": "questions for a part of a network in shards: a leaf, a slice or a piece of the guide",
    "links_of_other_wires": "links that did not come about, as the other end speaks another wire",
    "connections_dropped": "connections that had asked nothing yet and gave way to newer ones",
    "heads_published": "heads that are served, of several directories that agree",
    "heads_missed": "epochs without a head",
    "ballots_cast": "ballots of this authority",
    "evidence_found": "pieces of evidence that an authority said two things",
    "forks_found": "two heads of one epoch with the signatures of a quorum: this authority stopped",
    "fetches_dropped": "questions for a roster whose answer was cut short to make room for others",
}
"""By name, with its meaning."""
