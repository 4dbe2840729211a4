"""What a broker's configuration says, in a few lines for the one who wrote it."""

from __future__ import annotations

from hushcast_brokers.broker.settings import AnyBrokerSettings, BrokerSettings, RootSettings
from hushcast_brokers.broker_sections import BrokerSection
from hushcast_brokers.network_file import BrokersTerms
from hushcast_brokers.tomography.settings import TomographySettings
from hushcast_runtime.wording import counted

KEY_SHOWN = 16  # digits: enough to compare


def broker_summary(settings: AnyBrokerSettings) -> dict[str, list[str]]:
    """Return what a configuration says, by name."""
    found: dict[str, list[str]] = {"state": [settings.state], "role": [settings.role]}
    found["network"] = [_network(settings.network)]
    if (service := settings.tomography) is not None:
        told = "stated to and asked" if settings.role == "edge" else "stated to"
        found["tomography"] = [f"{told}: {short(service.key)} at {service.address}"]
    if isinstance(settings, RootSettings):
        found["keeping"] = [settings.kept().text]
        if settings.network.privacy == "community":
            found["communities"] = [short(key) for key in settings.communities] or ["none yet"]
        return found | {"brokers": [_broker(one) for one in settings.listed] or ["none yet"]}
    network = settings.network
    found["root"] = [f"{short(network.root_key)} at {network.root}"]
    found["parent"] = [_parent(settings.wish())]
    if settings.role == "edge":
        found |= _of_edge(settings)
    return found


def tomography_summary(settings: TomographySettings) -> dict[str, list[str]]:
    """Return what the configuration of a tomography service says, by name."""
    network = settings.network
    return {
        "state": [settings.state],
        "network": [_network(network)],
        "root": [f"{short(network.root_key)} at {network.root}"],
        "cap": [f"{counted(settings.cap, 'source')} of each edge broker on one topic"],
    }


def short(key: str) -> str:
    """Return the beginning of a key in hexadecimal digits."""
    return f"{key[:KEY_SHOWN]}…"


def _of_edge(settings: BrokerSettings) -> dict[str, list[str]]:
    clients, asked = settings.clients(), settings.anonymity
    served = "anybody" if clients is None else f"{len(clients):,} listed, nobody else"
    levels = "as each subscription asks"
    if asked is not None:
        levels = f"k = {asked.k}, {asked.condition}, otherwise {asked.otherwise}"
    return {"clients": [served], "anonymity": [levels]}


def _network(section: BrokersTerms) -> str:
    privacy = section.settled()
    found = [section.name, privacy.model]
    if privacy.model == "full":
        found += [f"{privacy.layers} layers", *(["as published"] if privacy.profile == "paper" else [])]
        if privacy.aggregates:
            found.append("aggregation: a broker alone can read what its children ask for")
    return ", ".join([*found, f"epochs of {counted(section.epoch_seconds, 'second')}"])


def _broker(one: BrokerSection) -> str:
    return f"{one.role}: {short(one.key)} at {one.address}, below {_parent(one.parent)}"


def _parent(key: str | None) -> str:
    return "the root" if key is None else short(key)
