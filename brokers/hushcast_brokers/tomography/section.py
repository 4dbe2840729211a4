"""The section `[tomography]`: the service, as it gives itself out, and brokers and people take it in."""

from __future__ import annotations

from typing import Annotated

import msgspec

from hushcast_brokers.tomography.broker_statements import TomographyAddress
from hushcast_brokers.tree_request import BrokerContact
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.tomography.questions import MAX_SPREAD
from hushcast_protocol.brokers.tomography.statements import MAX_CROWD
from hushcast_runtime.processes.config import KeyText, Section, reachable
from hushcast_runtime.processes.network_file import toml_text

SERVICE_FILE = "tomography.toml"
"""In the service's state directory: the section that brokers and whoever asks need."""
CAP = 8  # sources on one topic that an edge broker may vouch for: below the k that matters, if it can be

Cap = Annotated[int, msgspec.Meta(ge=1, le=MAX_CROWD)]


class TomographySection(Section, frozen=True, kw_only=True):
    """A tomography service, whose operator gives this out."""

    address: str
    """The service's address, `….onion:7411`."""
    key: KeyText
    """The service's public key, 64 hexadecimal digits: its answers are signed with it."""
    cap: Cap = CAP
    """For how many sources on one topic it lets an edge broker vouch."""
    spread: Annotated[int, msgspec.Meta(ge=1, le=MAX_SPREAD)] = 1
    """Of how many edge brokers a crowd is to be, where an edge broker asks for its clients."""

    def service(self) -> TomographyAddress:
        """Return where brokers state."""
        return TomographyAddress(bytes.fromhex(self.key), Address(self.address), self.cap, self.spread)

    def peer(self) -> BrokerContact:
        """Return whom to ask."""
        return BrokerContact(bytes.fromhex(self.key), Address(self.address))

    def check(self, transport: str) -> None:
        """Raise `UsageError` if the transport may not reach it."""
        reachable("tomography.address", self.address, transport)


class TomographyFile(Section, frozen=True, kw_only=True):
    """What a service writes as `tomography.toml`: where it is and nothing else."""

    tomography: TomographySection


def service_lines(key: PublicKey, address: Address, cap: int) -> str:
    """Return the section that a service gives out."""
    return f'[tomography]\naddress = {toml_text(address)}\nkey = "{key.hex()}"\ncap = {cap}\n'
