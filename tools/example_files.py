"""Writes the example configurations that wheel and package bring: what `hushcast init` makes for services."""

from __future__ import annotations

from pathlib import Path

from hushcast_brokers.network_file import brokers_section
from hushcast_central.network_file import central_section
from hushcast_cli.configuration.first_config import NetworkFoundation, first_config
from hushcast_cli.configuration.places import service_places
from hushcast_protocol.base.addresses import onion_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_protocol.central.introduction import SealingKey
from hushcast_protocol.central.network import CentralNetwork
from hushcast_runtime.processes.config import NetworkSection
from hushcast_runtime.processes.network_file import network_section

FOLDER = Path(__file__).parents[1] / "cli" / "hushcast_cli" / "examples"


def examples() -> dict[str, str]:
    """Return the texts of the examples by the names of their files; the network is nobody's."""
    nobody = Seed(bytes(32)).public()
    network = network_section(NetworkSection(name="example"), onion_address(nobody), nobody.hex())
    directory = first_config(
        "directory", service_places("directory"), None, NetworkFoundation("example", 3600)
    )
    proxy = first_config("publications-proxy", service_places("publications-proxy"), None, None)
    served = CentralNetwork("example", "hardened", 3600, nobody, SealingKey(bytes(32)).public())
    central = central_section(served, onion_address(nobody), ())
    broker = first_config("edge-broker", service_places("broker"), None, None)
    tree = brokers_section(BrokersNetwork("example", "clear", 3600, nobody), onion_address(nobody))
    tomography = first_config("tomography-service", service_places("tomography"), None, None)
    node = service_places("node")
    return {
        "directory.toml": directory,
        "central-server.toml": first_config(
            "central-server", service_places("central-server"), None, NetworkFoundation("example", 3600)
        ),
        "central-proxy.toml": proxy + "\n" + central,
        "broker-root.toml": first_config(
            "root-broker", service_places("broker-root"), None, NetworkFoundation("example", 3600)
        ),
        "broker.toml": broker + "\n" + tree,
        "tomography.toml": tomography + "\n" + tree,
        "located-provider.toml": _with_owner(
            first_config("located-provider", service_places("located-provider"), None, None)
        ),
        "located-owner.toml": first_config("located-owner", service_places("located-owner"), None, None),
        "gateway.toml": first_config("gateway", service_places("gateway"), None, None),
        "network.toml": network,
        "relay.toml": first_config("relay", node, None, None) + "\n" + network,
        "client.toml": first_config("client", node, None, None) + "\n" + network,
    }


def _with_owner(text: str) -> str:
    """Take the `#` away from what a feed's owner gives out, who is nobody."""
    given = text.replace('# owner = "…"', f'owner = "{Seed(bytes(32)).public().hex()}"')
    return given.replace("# feed = ", "feed = ")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in examples().items():
        (FOLDER / name).write_text(text)
