"""What is counted of the overlay."""

from __future__ import annotations

OVERLAY_COUNTERS = {
    "messages_dropped_here": "messages that anonymous publishers dropped at this relay",
    "messages_received": "messages that came over links",
    "messages_sent": "messages sent to next hops, repeats after a broken link included",
    "messages_duplicate": "messages for which all had been sent before",
    "messages_looped": "messages whose trail ended them here",
    "messages_unrouted": "messages for which this relay had no next hop",
    "messages_routed_late": "drops that had no next hop at first, and got one when leases came",
    "messages_expired": "messages given up because their day was over",
    "messages_detoured": "messages handed to another relay: the next hop was away, full or did not know them",
    "messages_lost_detour": "messages given up because no relay tried in turn knew their trees",
    "messages_without_lease": "messages whose leases ended before they were sent",
    "messages_over_share": "messages lost: a mailbox has its share of the spool already, here and elsewhere",
    "next_hops_away": "times that a next hop was silent for so long that messages went around it",
    "links_slowed": "times that a relay sent more to one next hop than it may, and was made to wait",
    "leases_pruned": "leases dropped because their next hop kept saying that it knows nothing of them",
    "parcels_opened": "parcels opened and carried out",
    "refused_form": "what was refused because its bytes or signatures did not hold",
    "refused_day": "what was refused because it belongs to another day or epoch",
    "refused_quota": "what was refused because a cap was reached",
    "refused_stamp": "what strangers handed in without the stamp that this relay asks for under load",
    "refused_other": "what was refused for another reason",
    "strangers_dropped": "connections that had proved nothing and gave way to newer ones",
    "links_opened": "links whose handshake succeeded",
    "links_failed": "links that could not be opened or broke",
    "rosters_taken": "rosters fetched and found to follow the chain",
    "heads_refused": "answers of a directory, one of several, that were not what a quorum of them signed",
    "roster_mismatches": "links whose other end holds another roster for the same epoch",
    "views_passed_over": "rosters shown by peers that no roster lists, which prove nothing",
    "rosters_held": "rosters not acted on because they lack too many relays at once",
    "rosters_late": "rosters that came when others had acted on them for long",
}
"""By name, with its meaning."""
