"""Settings of the `tor` transport: a tor process of our own, or the system's tor."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hushcast_protocol.errors import UsageError
from hushcast_runtime.tor.endpoints import Endpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class TorSettings:
    """Which tor to use: `state_directory` for our own process, or `control` and `socks` for the system's."""

    state_directory: Path | None = None
    """Where our own tor keeps its state, mode 0700; made when missing."""
    torrc_include: Path | None = None
    """A file of extra torrc lines for our own tor: how a testnet's daemon joins a private network."""
    control: Endpoint | None = None
    """Control port of the system's tor."""
    socks: Endpoint | None = None
    """SOCKS port of the same tor."""
    services: Path | None = None
    """Directory for the Unix sockets that the system's tor passes incoming streams to, instead of ports."""
    ready_within: float = 180.0
    """Seconds that starting tor and reaching its control port may take; bootstrapping takes what it takes."""
    published_within: float = 180.0
    """Seconds that the first upload of a service's descriptors may take."""

    defended: bool = True
    """Whether onion services ask for tor's proof-of-work defence, where tor has it."""

    def __post_init__(self) -> None:
        if self.state_directory is None:
            if self.control is None or self.socks is None:
                raise UsageError("the system's tor needs both its control and its socks endpoint")
            if self.torrc_include is not None:
                raise UsageError("extra torrc lines are for a tor of our own, not for the system's")
        elif self.control is not None or self.socks is not None or self.services is not None:
            raise UsageError("a tor of our own chooses its endpoints: give a state directory or endpoints")
        if self.ready_within <= 0 or self.published_within <= 0:
            raise UsageError("a deadline of tor is not a positive number of seconds")
