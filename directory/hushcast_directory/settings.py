"""Settings of a directory."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from hushcast_protocol.base.roster import MAX_RELAYS
from hushcast_runtime.config import DaemonSettings, NetworkSection, PathText


class DirectorySettings(DaemonSettings, frozen=True, kw_only=True):
    """Settings of `hushcast directory run`."""

    live: ClassVar[frozenset[str]] = frozenset({"log", "relays"})
    network: NetworkSection
    first_roster: Annotated[int, msgspec.Meta(ge=1, le=MAX_RELAYS)] = 1
    """Relays that must have registered before the first roster is published."""
    relays: PathText | None = None
    """A file with the names of the relays that may be listed: a closed network. Otherwise all may."""
