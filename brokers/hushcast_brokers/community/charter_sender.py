"""Sends a charter to the root, over the transport of a daemon's configuration."""

from __future__ import annotations

import tempfile
from pathlib import Path

import msgspec
import trio

from hushcast_brokers.community.charter_submission import hand_in
from hushcast_brokers.network_file import BrokersNetworkSection
from hushcast_brokers.tomography.settings import AskerSettings
from hushcast_brokers.tree_request import BrokerContact
from hushcast_protocol.base.errors import Refusal, UsageError
from hushcast_protocol.brokers.community.charter import Charter
from hushcast_protocol.brokers.frames import BrokerVerdict
from hushcast_runtime.environment import system_environment
from hushcast_runtime.processes.config import load_settings
from hushcast_runtime.processes.process import open_transport

_REASONS: dict[BrokerVerdict, str] = {
    "unknown": "the root does not list this community: its operator adds the keeper's key to `communities`",
    "form": "the root holds a newer charter, or another one of this epoch, as after an old backup: admit or"
    " expel somebody, so that there is a newer one",
    "day": "the epoch begins more than a day ahead of the root's clock: compare this machine's",
    "quota": "the root has no room for more communities",
}


async def send_charter(config: Path, network: BrokersNetworkSection, charter: Charter) -> None:
    """Have the root take a charter; raise `UsageError`, `Refusal`, `PeerError` or `TransportError`."""
    settings = load_settings(config, AskerSettings)
    if settings.network.network() != network.network():
        raise UsageError(f"{config} is of another network than this community")
    env = system_environment()
    root = BrokerContact(bytes.fromhex(network.root_key), settings.network.address())
    with tempfile.TemporaryDirectory(prefix="hushcast-") as own:
        reached = msgspec.structs.replace(settings, state=own)
        async with trio.open_nursery() as nursery:
            transport = await open_transport(reached, nursery, lambda tor: None)
            verdict = await hand_in(network.network(), root, charter.signed, transport, env)
            nursery.cancel_scope.cancel()
    if verdict != "accepted":
        raise Refusal(_REASONS.get(verdict, f"the root does not take the charter: {verdict}"))
