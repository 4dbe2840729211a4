"""What the doctor says of a relay's seat where several directories agree: why it has none yet, and when."""

from __future__ import annotations

from hushcast_directory.client.roster_source import SeatTerms
from hushcast_overlay.relay.name_work import NameWorkSearch
from hushcast_protocol.authorities.listing import first_chance
from hushcast_protocol.authorities.seat_admission import SeatAdmission
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.findings import Finding, good, warning
from hushcast_protocol.base.roster import Roster
from hushcast_protocol.base.wire import RelayId
from hushcast_runtime.wording import counted, span


def examine_seat(
    relay: RelayId,
    roster: Roster,
    terms: SeatTerms,
    search: NameWorkSearch | None,
    calendar: Calendar,
    now: float,
) -> Finding:
    """Return the finding; `roster` is the newest, whose head has these terms."""
    if relay in roster.relays:
        return good("seat", f"since epoch {roster.relays[relay].since}")
    if search is not None:
        return _searching(search)
    since = terms.waiting.get(relay)
    if since is None:
        return warning(
            "seat",
            "none: more than half of the directories have to reach this relay, and have not yet",
            "wait an epoch; then look at `registration` in `hushcast status`, and at the onion service",
        )
    seated = (one.since for one in roster.relays.values())
    chance = first_chance(since, roster.epoch, terms.admission, seated)
    others = len(terms.waiting) - 1
    return warning(
        "seat",
        f"none yet: it waits since epoch {since}, with {counted(others, 'other relay')};"
        f" {_rule(terms.admission)}",
        f"leave it running: the next chance is epoch {chance}, in"
        f" some {span(max(0.0, calendar.epoch_start(chance) - now))}",
    )


def examine_seat_in_shard(relay: RelayId, shard: Roster | None, search: NameWorkSearch | None) -> Finding:
    """Return the finding of a day that is cut into shards; `shard` is what is held of the relay's own."""
    if shard is not None and relay in shard.relays:
        others = counted(len(shard.relays) - 1, "other relay")
        return good("seat", f"since epoch {shard.relays[relay].since}, in a shard with {others}")
    if search is not None:
        return _searching(search)
    if shard is None:
        return warning(
            "seat",
            "not known: this relay's shard was not fetched yet",
            "wait some minutes; then look whether the directories answer",
        )
    return warning(
        "seat",
        "none in today's shard: newcomers are in one from the day after they got their seat",
        "leave the relay running; if it was listed before, look at `registration` in `hushcast status`",
    )


def _searching(search: NameWorkSearch) -> Finding:
    return warning(
        "seat",
        f"none: newcomers show work of {search.bits} bits, and it is being looked for;"
        f" {counted(search.tries, 'try', 'tries')} so far, some {span(search.expected)} expected",
        "leave the relay running: chance decides, and a search that is interrupted loses nothing",
    )


def _rule(admission: SeatAdmission) -> str:
    cap = counted(admission.newcomers, "newcomer")
    if admission.growth:
        cap = f"{cap}, or {admission.growth / 10:g} % of the network,"
    drawn = f"{cap} a day are drawn" if admission.newcomers else "all are seated"
    return f"{drawn} among those known since epoch 5 of the day before" if admission.age else drawn
