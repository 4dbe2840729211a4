"""Tracing: what takes what a testnet daemon saw and did; a daemon elsewhere has one that writes nothing."""

from __future__ import annotations

from typing import Protocol

from hushcast_protocol.base.ground_truth import GroundTruth
from hushcast_protocol.base.observations import Observed


class Tracer(Protocol):
    """Takes what a daemon observes, and what only it knows."""

    is_on: bool
    """Whether it writes anything: what takes work to tell is told only then."""

    def observe(self, observed: Observed) -> None:
        """Write down what this daemon saw."""

    def tell(self, told: GroundTruth) -> None:
        """Write down what only this daemon knows."""

    def close(self) -> None:
        """Write no more."""


class NoTracer:
    """The tracer of every daemon outside a testnet: it writes nothing."""

    is_on = False

    def observe(self, observed: Observed) -> None:
        """Do nothing."""

    def tell(self, told: GroundTruth) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""
