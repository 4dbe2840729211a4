"""Settings of an owner that runs: every one declared once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar

import msgspec

from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.spatial.batch import MAX_INTERVAL
from hushcast_protocol.spatial.tmr_tree import MAX_FAN_OUT
from hushcast_runtime.processes.config import PathText, ProcessSettings, Section, below_state_home, check_path
from hushcast_runtime.processes.doctors_socket import DOCTORS_SOCKET

STDIN = "-"
"""As `lines`: standard input."""
_ABSOLUTE = "give an absolute path, so that it does not depend on where you start"


class OwnersDaemonSection(Section, frozen=True, kw_only=True):
    """The daemon by which batches go out, and messages may come."""

    socket: PathText
    """Its control socket: the owner opens no other."""


class OwnersInputSection(Section, frozen=True, kw_only=True):
    """Where messages come from: one at least."""

    lines: PathText | None = None
    """A pipe that whoever has messages writes lines into, made unless it is there; `-` is standard input."""
    directory: PathText | None = None
    """A folder that files of lines or of alerts are put into."""
    topic: PathText | None = None
    """A file with the link of a topic that messages are published on."""


class OwnerSettings(ProcessSettings, frozen=True, kw_only=True):
    """Settings of `hushcast run located-owner`."""

    program_name: ClassVar[str] = "located-owner"
    """What `program` says in its file."""
    way_out: ClassVar[Mapping[str, str]] = {
        "feed": 'write feed = "/PATH" above the first section: the file with the link of the topic that '
        "batches go out on, which `hushcast topic new --private --output /PATH NAME` makes",
        "daemon": "add a section [daemon] with its control socket",
        "input": "add a section [input] that says where messages come from: lines, directory or topic",
    }

    state: PathText = "hushcast-located-owner"
    """Directory of all that is kept; a relative path is below `$XDG_STATE_HOME` or `~/.local/state`."""
    key: PathText | None = None
    """A file with the owner's key, that only the owner can read; one is made in `state` unless given."""
    former_key: PathText | None = None
    """A file with the key that signed so far, which hands over to `key`; for the first intervals alone."""
    feed: PathText
    """A file with the link of the topic that batches go out on; mode 0600 if that is private."""
    interval: Annotated[int, msgspec.Meta(ge=1, le=MAX_INTERVAL)] = 300
    """Seconds of an interval, at whose end a batch is signed."""
    max_distance: Annotated[float, msgspec.Meta(gt=0, le=20_016)] = 100.0
    """Kilometres from which on a place counts nothing; signed with the weights."""
    fan_out: Annotated[int, msgspec.Meta(ge=2, le=MAX_FAN_OUT)] = 4
    """Children of a node of a batch's tree."""
    keep: Annotated[int, msgspec.Meta(ge=1, le=3650)] = 30
    """Days that batches stay on disk, to be published again."""
    daemon: OwnersDaemonSection
    input: OwnersInputSection

    def state_path(self) -> Path:
        """Return the state directory."""
        return below_state_home(self.state)

    def doctors_socket(self) -> Path:
        """Return where an owner that runs is asked by its doctor."""
        return self.state_path() / DOCTORS_SOCKET

    def check_own(self) -> None:
        """Raise `UsageError` for what cannot be meant."""
        given = self.input
        check_path("state", self.doctors_socket())
        if given.lines is None and given.directory is None and given.topic is None:
            raise UsageError("input: it says nothing: give lines, directory or topic")
        paths = {
            "key": self.key,
            "former_key": self.former_key,
            "feed": self.feed,
            "daemon.socket": self.daemon.socket,
            "input.lines": given.lines if given.lines != STDIN else None,
            "input.directory": given.directory,
            "input.topic": given.topic,
        }
        for name, path in paths.items():
            if path is not None and not Path(path).is_absolute():
                raise UsageError(f"{name}: {_ABSOLUTE}")
        check_path("daemon.socket", Path(self.daemon.socket))
