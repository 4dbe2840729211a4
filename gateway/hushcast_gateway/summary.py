"""What a configuration says, in a few lines for the one who wrote it."""

from __future__ import annotations

from hushcast_gateway.settings import AccessSection, GatewaySettings
from hushcast_runtime.wording import counted


def summary(settings: GatewaySettings) -> dict[str, list[str]]:
    """Return where clients connect, who may what, and which topics travel, by name."""
    users = [f"{name}: {_access(user)}" for name, user in settings.users.items()]
    if settings.anonymous is not None:
        users.append(f"anybody on this machine: {_access(settings.anonymous)}")
    travels = [f"hush/{alias.name}/…" for alias in settings.gateway.alias]
    travels += [f"{way.from_} as hush/{way.to}/…" for way in settings.gateway.map]
    found = {
        "state": [str(settings.state_path())],
        "listens": [place.title for place in settings.listeners()],
        "users": users,
    }
    if settings.daemon.socket is not None:
        found["daemon"] = [settings.daemon.socket]
    return found | ({"travels": travels} if travels else {})


def _access(section: AccessSection) -> str:
    allowed = f"publishes to {counted(len(section.publish), 'filter')}"
    allowed += f", subscribes to {counted(len(section.subscribe), 'filter')}"
    denied = len(section.deny_publish) + len(section.deny_subscribe)
    return allowed + (f", {denied} denied" if denied else "")
