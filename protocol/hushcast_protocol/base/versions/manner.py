"""The manner of a wire: what others can count or time of ends that say no name, beside what these say.

A release that tried once more, or waited longer, would sort those who publish and subscribe into before and
after for whoever watches. So these numbers are of a wire, as its kinds are: all change on one day.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How ends without a name show themselves in one wire; what is not said is as in the newest."""

    # What is published, and probes like it
    attempts: int = 3
    """Circuits for one drop: another taker where none answers."""
    longest_delay: float = 3.0
    """Seconds at random before the second and the third, so that they do not show as one."""
    receipt_within: float = 30.0
    """Seconds from a drop to its receipt."""
    first_retry: float = 30.0
    """Seconds after which the outbox tries again; doubled each time."""
    longest_retry: float = 600.0
    """Seconds between two such tries."""
    republish_within: float = 10.0
    """Seconds after a restart in which the outbox tries again, at random moments."""
    earliest_look: float = 300.0
    """Seconds from a drop to the look whether keepers have it: they do by then."""
    latest_look: float = 1200.0
    """Seconds within which that is, at a random moment."""
    keepers_asked: int = 3
    """Keepers of one look that answer; of one that is silent another is asked in its place.

    Where a fifth of the relays lie that they have it, two deceive 16 looks of 10,000, three 3 to 5
    (`benchmarks/models/looks.py`).
    """
    keepers_asked_more: int = 2
    """And so many where one alone does not show it: else half of the drops anew were its doing."""
    dropped_anew: int = 3
    """Times: the origins of all are bad for 3 of a million at most where a fifth of the relays are."""
    times_anew: int = 2
    """As many origins as at first where no keeper shows it: what trees lose then, too, came an epoch late."""

    # Probes
    probes_an_epoch: float = 24.0
    """Of a subscription where what is lost is lost for good: who loses messages is found within hours."""
    probes_a_day: float = 18.0
    """Of a subscription where keepers have what is lost on the way: of a hundred relays nine of ten that lose
    everything are found in nine to eleven days, by two thirds as many in sixteen
    (`benchmarks/models/coverage.py`).

    Each is five first contacts: a client that publishes nothing opens at most 130 a day.
    """
    probes_of_relays: float = 2.0
    """The same of a daemon that runs a relay, whoever keeps: rosters list when it is up, and who knows the
    topic sees when its probes come. Two name it within 60 days in none of 60 cases
    (`benchmarks/models/seen_probes.py`)."""
    bytes_a_probe: int = 8 * 1024
    """Bytes that probes may have in the mean; those of any form have 6.5 KiB."""

    # Cover
    round_from: float = 0.1
    """Share of a round before which no daemon under cover has its moment: clocks differ."""
    round_until: float = 0.9
    """Share after which none has it: letters have to be there before the round ends."""
    link_ahead: float = 0.4
    """Share of a round before its moment at which the link to a porter is opened where there is none."""
    link_within: float = 0.95
    """Share of a round that it may take to open: one that is late for its round is there for the next."""

    # Trees
    rounds: int = 3
    """Of an installation: down the tree, and then twice one by one to those who were not reached."""
    next_round_after: float = 5.0
    """Seconds from the first confirmation of a round until the next one begins: a first contact. A branch in
    which one relay is away answers after up to a minute, and those below would not be told until then."""
    told_ahead: int = 3
    """Top relays that are told in parcels of their own, too, while somebody waits: one may be away."""
    patience_a_level: int = 20
    """Seconds that a relay awaits an answer for each level below: a first contact takes 1 to 5."""
    first_pause: float = 2.0
    """Seconds until relays of which none confirmed, or a host that was not reached, are tried again; it is
    doubled each time."""
    longest_pause: float = 60.0
    """Seconds between two such tries."""
    retell_within: float = 10.0
    """Seconds after a restart in which relays are told what is missing, each route at its moment."""

    # Boxes
    attach_within: float = 10.0
    """Seconds after a start, or a link's end, in which boxes attach, each at its moment."""
    acknowledges_within: float = 1.0
    """Seconds in which an owner acknowledges what its host brought, or answers its sign of life, at a moment
    that four draws make: who kept its daemon busy, or had it publish, would see that it answers later."""
    away_epochs: int = 2
    """Epochs that the first host is away before the second is used."""
    settled_epochs: int = 2
    """Epochs since a link began, or a host was asked for the past, before it is judged."""
    ended_within: float = 60.0
    """Seconds that a link stays, for withdrawals, when the host was told that all is over."""
    silent_for: float = 180.0
    """Seconds without a frame after which a host is away: it shows a sign of life every 120."""
    quiet_for: float = 45.0
    """Seconds without a message after which a host has brought all: it sends what waits at once.

    Less than the minute after which one that forgot the box ends the link: its owner would come back always.
    """
    left_within: float = 1.0
    """Epochs after its use in which the link to a host ends, whatever comes over it."""
    comes_within: float = 0.5
    """Days, of the one in which a host keeps what came late, until its owner comes for it."""

    # What a server keeps, or the root of brokers
    days_apart: float = 60.0
    """Seconds at random before a day gone by is asked for: several of one subscription come in no row."""
    day_quiet_for: float = 15.0
    """Seconds without a message after which whoever asked for a day asks whether that was all of it."""
    day_turns: int = 3
    """Times that whoever asks for a day attaches before another pseudonym asks, through another proxy."""
    there_for: float = 60.0
    """Seconds at the end of a day by which it counts whether an end was there: clocks differ."""


NEWEST = Manner()
"""That of the newest wire."""
