"""Settings of a directory."""

from __future__ import annotations

from typing import Annotated

import msgspec

from hushcast_protocol.base.roster import MAX_RELAYS
from hushcast_runtime.config import DaemonSettings, NetworkSection


class DirectorySettings(DaemonSettings, frozen=True, kw_only=True):
    """Settings of `hushcast directory run`."""

    network: NetworkSection
    first_roster: Annotated[int, msgspec.Meta(ge=1, le=MAX_RELAYS)] = 1
    """Relays that must have registered before the first roster is published."""
