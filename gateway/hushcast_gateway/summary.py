"""What a configuration says, in a few lines for the one who wrote it."""

from __future__ import annotations

import msgspec

from hushcast_gateway.sections.access_sections import AccessSection
from hushcast_gateway.sections.limits_section import LimitsSection
from hushcast_gateway.sections.purposes_section import (
    PurposesOfUser,
    PurposesSection,
    ReservationSection,
    check_vocabulary,
    vocabulary_of,
)
from hushcast_gateway.settings import GatewaySettings
from hushcast_runtime.wording import counted


def summary(settings: GatewaySettings) -> dict[str, list[str]]:
    """Return where clients connect, who may what, and which topics travel, by name."""
    users = [f"{name}: {_access(user)}" for name, user in settings.users.items()]
    if settings.anonymous is not None:
        users.append(f"anybody on this machine: {_access(settings.anonymous)}")
    travels = [
        f"hush/{alias.name}/…"
        + (", sealed for purposes" if alias.keys is not None else "")
        + (", with its reservations" if alias.reservations else "")
        for alias in settings.gateway.alias
    ]
    travels += [f"{way.from_} as hush/{way.to}/…" for way in settings.gateway.map]
    found = {
        "state": [str(settings.state_path())],
        "listens": [place.title for place in settings.listeners()],
        "users": users,
    }
    if settings.announce is not None:
        found["announces"] = [f"what listens at {settings.announce}, by mDNS, to its network"]
    if settings.daemon.socket is not None:
        found["daemon"] = [settings.daemon.socket]
    if changed := _changed(settings.limits):
        found["limits"] = changed
    if settings.history.topics:
        of, hours = ", ".join(settings.history.topics), counted(settings.history.hours, "hour")
        found["history"] = [f"{of}: {hours}"]
    if settings.purposes is not None:
        found["purposes"] = _purposes(settings, settings.purposes)
    return found | ({"travels": travels} if travels else {})


def _changed(limits: LimitsSection) -> list[str]:
    """Return the bounds that are not as they are unless set."""
    usual = msgspec.structs.asdict(LimitsSection())
    return [
        f"{name}: {value:,} instead of {usual[name]:,}"
        for name, value in msgspec.structs.asdict(limits).items()
        if value != usual[name]
    ]


def _purposes(settings: GatewaySettings, section: PurposesSection) -> list[str]:
    """Return what is said of purposes; raises `UsageError` where a purpose is none."""
    vocabulary = vocabulary_of(section)
    check_vocabulary(vocabulary, settings.named_purposes())
    decided = {"publish": "for each message", "subscribe": "for whole subscriptions", "hybrid": "for both"}
    whose = section.vocabulary or "the W3C's"
    unreserved = "nobody" if section.strict else "everybody"
    found = [
        f"decided {decided[section.mode]}, by a {section.store} store; the unreserved is for {unreserved}",
        f"vocabulary: {counted(len(vocabulary), 'purpose')}, {whose}",
    ]
    found += [
        f"{one.filter}: for {', '.join(one.aip) or 'nothing'}" + _not(one) for one in section.reservation
    ]
    for name, user in settings.speakers().items():
        if user.speaks_of_purposes():
            found.append(f"{name or 'anybody on this machine'}: {_said(user)}")
    return found


def _not(one: ReservationSection) -> str:
    return f", not for {', '.join(one.pip)}" if one.pip else ""


def _said(user: PurposesOfUser) -> str:
    said = [f"may claim {', '.join(user.purposes)}"] if user.purposes else []
    said += [f"subscribes for {user.purpose}"] if user.purpose else []
    said += [f"may reserve {', '.join(user.reserve)}"] if user.reserve else []
    said += [f"may presubscribe {', '.join(user.may_presubscribe)}"] if user.may_presubscribe else []
    return "; ".join(said)


def _access(section: AccessSection) -> str:
    allowed = f"publishes to {counted(len(section.publish), 'filter')}"
    allowed += f", subscribes to {counted(len(section.subscribe), 'filter')}"
    denied = len(section.deny_publish) + len(section.deny_subscribe)
    return allowed + (f", {denied} denied" if denied else "")
