"""Counters: how often each kind of thing happened, declared here, never by peer or topic."""

from __future__ import annotations

from collections.abc import Mapping

COUNTERS = {
    "messages_dropped_here": "messages that anonymous publishers dropped at this relay",
    "messages_received": "messages that came over links",
    "messages_sent": "messages sent to next hops, repeats after a broken link included",
    "messages_delivered": "messages put into the inbox",
    "messages_duplicate": "messages for which all had been sent before",
    "messages_looped": "messages whose trail ended them here",
    "messages_unrouted": "messages for which this relay had no next hop",
    "messages_expired": "messages given up because their day was over",
    "messages_detoured": "messages handed to another relay: the next hop was away, full or did not know them",
    "messages_lost_detour": "messages given up because no relay tried in turn knew their trees",
    "messages_without_lease": "messages whose leases ended before they were sent",
    "messages_over_share": "messages lost: a mailbox has its share of the spool already, here and elsewhere",
    "next_hops_away": "times that a next hop was silent for so long that messages went around it",
    "links_slowed": "times that a relay sent more to one next hop than it may, and was made to wait",
    "leases_pruned": "leases dropped because their next hop kept saying that it knows nothing of them",
    "messages_lost_inbox": "messages dropped from the inbox unacknowledged: too old, or it was full",
    "messages_excess": "messages that came to a mailbox and did not match what was wanted",
    "messages_not_ours": "messages at a mailbox that do not open under its topic",
    "probes_sent": "probes that a relay took over",
    "gaps_found": "messages that other subscribers report and that did not come",
    "publications_given_up": "publications that no relay took before their day was over",
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
    "roster_mismatches": "links whose other end holds another roster for the same epoch",
    "views_passed_over": "rosters shown by peers that no roster lists, which prove nothing",
    "rosters_held": "rosters not acted on because they lack too many relays at once",
    "rosters_late": "rosters that came when others had acted on them for long",
    "internal_errors": "errors of this program that cost one connection; please report them",
}


DIRECTORY_COUNTERS = {
    "relays_registered": "descriptors of relays that were taken",
    "relays_carried": "relays that did not renew in a flood and stay in a roster because they were reached",
    "registrations_refused": "descriptors that were not, whatever the reason",
    "newcomers_turned_away": "of these, unlisted relays that came while too many others waited",
    "rosters_asked_for": "questions for a roster",
    "connections_dropped": "connections that had asked nothing yet and gave way to newer ones",
    "fetches_dropped": "questions for a roster whose answer was cut short to make room for others",
}
"""What a directory counts instead."""


class Counters:
    """Counts since the daemon started."""

    def __init__(self, meanings: Mapping[str, str] = COUNTERS) -> None:
        """Begin with all that `meanings` declares at 0."""
        self.meanings = meanings
        self._counts: dict[str, int] = {}  # of what was counted: simulations hold thousands of these

    def add(self, name: str, amount: int = 1) -> None:
        """Count; a name that is not declared is an error of ours."""
        if name in self._counts:
            self._counts[name] += amount
        else:
            self._counts[name] = self[name] + amount

    def __getitem__(self, name: str) -> int:
        if (count := self._counts.get(name)) is not None:
            return count
        if name not in self.meanings:
            raise KeyError(name)
        return 0

    def as_dict(self) -> dict[str, int]:
        """Return all counts."""
        return dict.fromkeys(self.meanings, 0) | self._counts
