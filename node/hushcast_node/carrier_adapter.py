"""Carrier adapters: what a carrier needs around it in a daemon, and what the daemon says of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from hushcast_local.topic_keys import Derive, TopicKeys
from hushcast_runtime.carriers.carrier import Carrier
from hushcast_runtime.clock import DaemonClock
from hushcast_runtime.context import Context
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.storage.store import Store
from hushcast_runtime.transports.base import Transport


@dataclass(frozen=True)
class AdapterContext:
    """What a daemon gives its carrier adapter when both are made."""

    env: Environment
    """With the daemon's clock."""
    clock: DaemonClock
    transport: Transport
    store: Store
    counters: Counters


class CarrierAdapter(Protocol):
    """Wires one carrier into a daemon."""

    @property
    def ready(self) -> bool:
        """Whether the network answered, and has what it needs of this daemon."""

    @property
    def cut_off(self) -> str | None:
        """Why nothing reaches the network any more, for people; `None` where something does, or may."""

    @property
    def role(self) -> str:
        """`relay` or `client`."""

    @property
    def profile_name(self) -> str:
        """Which of the carrier's profiles is in use."""

    def topic_keys(self, env: Environment, derive: Derive) -> TopicKeys:
        """Return what derives the keys of topics; `derive` is used where topics are stretched."""

    async def start(self, context: Context) -> Carrier:
        """Make the carrier, and start what it needs around it, which ends with the daemon."""

    def waits_for(self) -> str:
        """Say in a few words what is missing until it is ready."""

    def describe(self) -> str:
        """Say in a few words what it works with."""

    def status(self) -> dict[str, Any]:
        """Describe it, as `hushcast status --json` shows."""
