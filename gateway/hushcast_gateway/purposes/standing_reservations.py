"""Reservations as they stand on a gateway's disk and in its configuration: whose they are, and for what."""

from __future__ import annotations

from typing import Any

from hushcast_gateway.purposes.explanation import NO_SECTION
from hushcast_gateway.purposes.purpose_state import PurposeState, configured
from hushcast_gateway.purposes.reservation_removal import is_to_be_dropped, to_be_dropped
from hushcast_gateway.sections.purposes_section import CONFIGURATION, vocabulary_of
from hushcast_gateway.settings import GatewaySettings
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.purposes.clauses import Clause
from hushcast_runtime.storage.state_layout import DATABASE


def standing(settings: GatewaySettings, owner: str | None = None) -> list[Clause]:
    """Return the reservations there are, of one owner or of all, sorted by owner and filter.

    Raises `UsageError` without purposes, `StoreError` or `DamagedRecord` for the disk.
    """
    section = settings.purposes
    if section is None:
        raise UsageError(NO_SECTION)
    kept = PurposeState(
        "tree", configured(section, vocabulary_of(section)), {CONFIGURATION, *settings.speakers()}
    )
    kept.read(settings.state_path() / DATABASE)
    asked = to_be_dropped(settings.state_path())
    found = [one for one in kept.reservations if asked is None or not is_to_be_dropped(one, asked)]
    return sorted(
        (one for one in found if owner is None or one.owner == owner), key=lambda one: (one.owner, one.filter)
    )


def orphans(settings: GatewaySettings) -> list[Clause]:
    """Return the reservations of users that the configuration has not any more; raises as `standing`."""
    return [one for one in standing(settings) if one.of_nobody]


def to_drop(settings: GatewaySettings, owner: str, wanted: str | None) -> list[Clause]:
    """Return what would be taken away of an owner's; raises `UsageError` where there is nothing to take."""
    if owner == CONFIGURATION:
        raise UsageError("what the configuration reserves is taken out there: [[purposes.reservation]]")
    found = [one for one in standing(settings, owner) if wanted in (None, one.filter)]
    if not found:
        what = f"{owner or 'anybody'} reserved nothing" + (f" for {wanted}" if wanted is not None else "")
        raise UsageError(f"{what}: `hushcast gateway purpose list` shows all that is reserved")
    return found


def as_json(one: Clause) -> dict[str, Any]:
    """Return a reservation's keys; `gone` tells that there is no such user any more."""
    said = {"aip": sorted(one.aip), "pip": sorted(one.pip)}
    return {"owner": one.owner, "filter": one.filter, **said, "gone": one.of_nobody}


def as_text(one: Clause) -> str:
    """Return a reservation as a line."""
    said = f"{one.owner or 'anybody'} reserves {one.filter} for {', '.join(sorted(one.aip)) or 'nothing'}"
    said += f", not for {', '.join(sorted(one.pip))}" if one.pip else ""
    return said + (" (there is no such user any more)" if one.of_nobody else "")
