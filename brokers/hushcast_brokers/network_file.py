"""The section `[network]` of a network of brokers: what its root gives out, and what nodes take in."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.roster import Network
from hushcast_protocol.brokers.full.layers import MAX_LAYERS, MIN_LAYERS
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_protocol.brokers.privacy import DEFAULT_LAYERS, Privacy, read_privacy
from hushcast_runtime.processes.config import AnyNetworkTerms, KeyText, Section, reachable
from hushcast_runtime.processes.network_file import toml_text


class BrokersTerms(AnyNetworkTerms, frozen=True, kw_only=True):
    """What all daemons of a network of brokers agree on, its brokers among them."""

    privacy: Literal["clear", "community", "full"] = "clear"
    """What brokers learn. `clear`: conditions, values of numbers, and open topics whose names they guess.
    `community`: the same, of the communities that they are in, and of others that there is something.
    `full`: neither conditions nor words."""
    layers: Annotated[int, msgspec.Meta(ge=MIN_LAYERS, le=MAX_LAYERS)] = DEFAULT_LAYERS
    """Under `full`: brokers in a row, from an edge broker up, that read words together, but for guesses."""
    profile: Literal["hardened", "paper"] = "hardened"
    """Under `full`: `hardened`, or in a testnet `paper`, the scheme as published."""
    aggregation: bool = False
    """Under `full`: whether brokers are told which of their children ask for the same, and pass on one. Then
    any broker that makes up a child needs nobody else to read what its children ask for."""

    def settled(self) -> Privacy:
        """Return what the network's profile says."""
        if self.privacy != "full":
            return Privacy(self.privacy)
        return Privacy("full", self.layers, self.profile, self.aggregation)

    def identity(self) -> Network:
        """Return what tells networks apart, whatever their carrier."""
        return Network(self.name, self.settled().text, self.epoch_seconds)

    def check_privacy(self, is_testnet: bool) -> None:
        """Raise `UsageError` for what means nothing, or protects nobody outside of a testnet."""
        defaults = {"layers": DEFAULT_LAYERS, "profile": "hardened", "aggregation": False}
        given = [name for name, default in defaults.items() if getattr(self, name) != default]
        if self.privacy != "full" and given:
            raise UsageError(f'network.{given[0]}: it is for privacy = "full": take it out')
        if self.profile == "paper" and not is_testnet:
            raise UsageError(
                'network.profile: "paper" is for testnets: it hides nothing that can be guessed; take it out'
            )

    def network_of(self, root: bytes) -> BrokersNetwork:
        """Return what the protocol calls the network whose root has this public key."""
        return BrokersNetwork(self.name, self.settled().text, self.epoch_seconds, root)


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
        f"{privacy_lines(read_privacy(network.profile))}"
        f"epoch_seconds = {network.epoch_seconds}\n"
        f"root = {toml_text(root)}\n"
        f'root_key = "{network.root.hex()}"\n'
    )


def privacy_lines(privacy: Privacy) -> str:
    """Return the lines that say what brokers learn."""
    lines = [f'privacy = "{privacy.model}"']
    if privacy.model == "full":
        lines.append(f"layers = {privacy.layers}")
        lines += ['profile = "paper"'] if privacy.profile == "paper" else []
        lines += ["aggregation = true"] if privacy.aggregates else []
    return "".join(f"{line}\n" for line in lines)
