"""What the options that commands share chose, wherever on the command line they stood."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import click

from hushcast.sockets import VARIABLE


@dataclass
class Choices:
    """What the shared options chose, wherever on the command line they stood; and that line, as typed."""

    socket: Path | None = None
    node: str | None = None
    """A daemon's name in the testnet that runs; never together with a socket."""
    json: bool = False
    line: str | None = None

    @property
    def names_daemon(self) -> bool:
        """Whether somebody said which daemon is meant, here or in the environment."""
        return bool(self.socket or self.node or os.environ.get(VARIABLE))


pass_choices = click.make_pass_decorator(Choices, ensure=True)
