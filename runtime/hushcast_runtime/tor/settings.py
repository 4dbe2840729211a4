"""Settings of the `tor` transport: a tor process of our own, the system's tor, or a SOCKS port alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.transports.endpoints import Endpoint
from hushcast_runtime.transports.local_sockets import MAX_PATH

SERVICE_NAME = 21  # bytes of the name of a Unix socket in the directory of services
MAX_SERVICES = MAX_PATH - 1 - SERVICE_NAME  # bytes of the path of that directory


@dataclass(frozen=True, slots=True, kw_only=True)
class TorSettings:
    """Which tor to use: `state_directory` for our own process, or `socks` of another, and its `control`."""

    state_directory: Path | None = None
    """Where our own tor keeps its state and all its sockets, mode 0700; made when missing."""
    torrc_include: Path | None = None
    """A file of extra torrc lines for our own tor: how a testnet's daemon joins a private network."""
    control: Endpoint | None = None
    """Control port of the system's tor; without it there are no onion services."""
    socks: Endpoint | None = None
    """SOCKS port of the same tor."""
    services: Path | None = None
    """Directory for the Unix sockets that the system's tor passes incoming streams to, instead of ports.

    It belongs to a group that tor is in, has the mode 2710 or less, and nobody else may enter it.
    """
    ready_within: float = 180.0
    """Seconds that starting tor and reaching its control port may take; bootstrapping takes what it takes."""
    published_within: float = 180.0
    """Seconds that the first upload of a service's descriptors may take."""

    defended: bool = True
    """Whether onion services ask for tor's proof-of-work defence, where tor has it."""

    def __post_init__(self) -> None:
        if self.state_directory is None:
            if self.socks is None:
                raise UsageError("the system's tor needs its socks endpoint")
            if self.control is None and self.services is not None:
                raise UsageError("a SOCKS port alone carries no onion services")
            if self.torrc_include is not None:
                raise UsageError("extra torrc lines are for a tor of our own, not for the system's")
        elif self.control is not None or self.socks is not None or self.services is not None:
            raise UsageError("a tor of our own chooses its endpoints: give a state directory or endpoints")
        if self.sockets is not None and len(bytes(self.sockets)) > MAX_SERVICES:
            what = "services" if self.services is not None else "our tor's directory in state"
            raise UsageError(
                f"{what}: the path has over {MAX_SERVICES} bytes, which leaves no room for Unix sockets in it"
            )
        if self.ready_within <= 0 or self.published_within <= 0:
            raise UsageError("a deadline of tor is not a positive number of seconds")

    @property
    def has_control(self) -> bool:
        """Whether there is a control port, which onion services take."""
        return self.state_directory is not None or self.control is not None

    @property
    def sockets(self) -> Path | None:
        """Directory of the Unix sockets by which tor reaches onion services; `None` where it takes ports."""
        return self.services if self.state_directory is None else self.state_directory.absolute()
