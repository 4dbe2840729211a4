"""Settings of a provider: every one declared once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar

import msgspec

from hushcast_protocol.base.crypto.proof_of_work import MAX_DIFFICULTY
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.spatial.batch import MAX_INTERVAL
from hushcast_protocol.spatial.subscription_register import MAX_SUBSCRIPTIONS
from hushcast_runtime.processes.config import PathText, ProcessSettings, Section, below_state_home, check_path
from hushcast_runtime.processes.doctors_socket import DOCTORS_SOCKET

_ABSOLUTE = "give an absolute path, so that it does not depend on where you start"


class ProvidersDaemonSection(Section, frozen=True, kw_only=True):
    """The daemon by which batches, requests and answers travel."""

    socket: PathText
    """Its control socket: the provider opens no other."""


class ProviderSettings(ProcessSettings, frozen=True, kw_only=True):
    """Settings of `hushcast run located-provider`."""

    program_name: ClassVar[str] = "located-provider"
    """What `program` says in its file."""
    way_out: ClassVar[Mapping[str, str]] = {
        "owner": 'write owner = "…" above the first section: what `hushcast located key new` printed to the '
        "feed's owner",
        "feed": 'write feed = "/PATH" above the first section: the file with the link of the topic that the '
        "owner publishes on",
        "daemon": "add a section [daemon] with its control socket",
    }

    state: PathText = "hushcast-located"
    """Directory of all that is kept; a relative path is below `$XDG_STATE_HOME` or `~/.local/state`."""
    owner: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-fA-F]{64}\Z")]
    """The public key of the feed's owner, as `hushcast located key new` prints it."""
    feed: PathText
    """A file with the link of the topic that the owner publishes batches on; mode 0600 if that is private."""
    requests: PathText | None = None
    """Such a file for the topic that subscriptions come on; one is made in `state` unless given."""
    daemon: ProvidersDaemonSection
    difficulty: Annotated[int, msgspec.Meta(ge=1, le=MAX_DIFFICULTY)] = 16
    """Bits of the stamp that a request needs: 16 take a subscriber some 20 ms, each more twice as long."""
    most: Annotated[int, msgspec.Meta(ge=1, le=MAX_SUBSCRIPTIONS)] = 1_000
    """Subscriptions that are answered; more are refused, and nobody makes room for them."""
    patience: Annotated[int, msgspec.Meta(ge=1, le=MAX_INTERVAL)] = 900
    """Seconds that a batch waits for one before it that did not come."""

    def state_path(self) -> Path:
        """Return the state directory."""
        return below_state_home(self.state)

    def doctors_socket(self) -> Path:
        """Return where a provider that runs is asked by its doctor."""
        return self.state_path() / DOCTORS_SOCKET

    def check_own(self) -> None:
        """Raise `UsageError` for paths that cannot be meant."""
        check_path("state", self.doctors_socket())
        for key, path in (("feed", self.feed), ("requests", self.requests)):
            if path is not None and not Path(path).is_absolute():
                raise UsageError(f"{key}: {_ABSOLUTE}")
        if not Path(self.daemon.socket).is_absolute():
            raise UsageError(f"daemon.socket: {_ABSOLUTE}")
        check_path("daemon.socket", Path(self.daemon.socket))
