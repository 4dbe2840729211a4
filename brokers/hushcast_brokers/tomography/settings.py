"""Settings of the tomography service, and of whoever asks it from the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from hushcast_brokers.network_file import BrokersNetworkSection
from hushcast_brokers.tomography.section import CAP, Cap, TomographySection
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.brokers.tomography.tomography_service import SETTLE
from hushcast_runtime.processes.config import DaemonSettings
from hushcast_runtime.processes.doctors_socket import ExaminedSettings

MAX_SETTLE = 3600  # seconds; nobody waits for longer


class TomographySettings(ExaminedSettings, frozen=True, kw_only=True):
    """Settings of a service."""

    program_name: ClassVar[str] = "tomography"
    """What `program` says in its file."""
    way_out: ClassVar[Mapping[str, str]] = {
        "network": "`hushcast join network.toml --config` and this file adds it, from what the root wrote",
        "role": 'write role = "tomography"',
    }
    """What adds a key that is missing."""

    role: Literal["tomography"]
    """`tomography`: so nobody takes this for a broker's configuration."""
    network: BrokersNetworkSection
    cap: Cap = CAP
    """For how many clients on one topic an edge broker may vouch."""
    settle: Annotated[int, msgspec.Meta(ge=0, le=MAX_SETTLE)] = SETTLE
    """Seconds for which a filter is to be anonymous again before those who watch hear of it."""

    def check_own(self) -> None:
        """Raise `UsageError` where the root is out of reach."""
        super().check_own()
        self.network.check(self.transport)
        self.network.check_privacy(self.is_watched)
        if self.network.privacy != "clear":
            raise UsageError(
                f'network.privacy: with "{self.network.privacy}" brokers have no filters to state to others'
            )


class AskerSettings(DaemonSettings, frozen=True, kw_only=True):
    """What it takes to ask, of the configuration of any daemon of the network."""

    network: BrokersNetworkSection
    tomography: TomographySection | None = None

    @property
    def is_reached(self) -> bool:
        """Nobody connects to whoever asks."""
        return False

    @classmethod
    def completed(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Return what matters here."""
        return {key: value for key, value in values.items() if key in cls.__struct_fields__}

    def check_own(self) -> None:
        """Raise `UsageError` where the root or the service is out of reach."""
        self.network.check(self.transport)
        if self.tomography is not None:
            self.tomography.check(self.transport)
