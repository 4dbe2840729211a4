"""The section `[network]` of a network of brokers: what its root gives out, and what nodes take in."""

from __future__ import annotations

from typing import Annotated

import msgspec

from hushcast_protocol.base.addresses import Address
from hushcast_protocol.brokers.network import BrokersNetwork, Privacy
from hushcast_runtime.config import AnyNetworkTerms, Section, reachable
from hushcast_runtime.network_file import toml_text

KeyText = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]  # 32 bytes in hexadecimal digits


class BrokersTerms(AnyNetworkTerms, frozen=True, kw_only=True):
    """What all daemons of a network of brokers agree on, its brokers among them."""

    privacy: Privacy = "clear"
    """What brokers learn. `clear`: conditions, values of numbers, and open topics whose names they guess."""

    def network_of(self, root: bytes) -> BrokersNetwork:
        """Return what the protocol calls the network whose root has this public key."""
        return BrokersNetwork(self.name, self.privacy, self.epoch_seconds, root)


class BrokersNetworkSection(BrokersTerms, frozen=True, kw_only=True, tag_field="carrier", tag="brokers"):
    """A tree of brokers, whose root's operator gives this out; all its daemons agree on it."""

    root: str
    """The root's address, which takes what is published, `….onion:7411`."""
    root_key: KeyText
    """The root's public key, which signs the tree, 64 hexadecimal digits."""

    def network(self) -> BrokersNetwork:
        """Return what the protocol calls the network."""
        return self.network_of(bytes.fromhex(self.root_key))

    def address(self) -> Address:
        """Return the root's address, which `check` looks at."""
        return Address(self.root)

    def check(self, transport: str) -> None:
        """Raise `UsageError` if the transport may not reach the root."""
        reachable("network.root", self.root, transport)


class BrokersNetworkFile(Section, frozen=True, kw_only=True):
    """What a root writes as `network.toml`: a network and nothing else."""

    network: BrokersNetworkSection


def brokers_section(network: BrokersNetwork, root: Address) -> str:
    """Return the lines of `[network]`; `root` is where the root is reached."""
    return (
        "[network]\n"
        'carrier = "brokers"\n'
        f"name = {toml_text(network.name)}\n"
        f'privacy = "{network.profile}"\n'
        f"epoch_seconds = {network.epoch_seconds}\n"
        f"root = {toml_text(root)}\n"
        f'root_key = "{network.root.hex()}"\n'
    )
