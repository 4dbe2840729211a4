"""Delivery to a route: gives what arrived to whoever wants it, and stops at once when its route ends."""

from __future__ import annotations

import trio

from hushcast_protocol.content.messages import Message
from hushcast_runtime.carriers.carrier import RoutedInterest


class RouteDelivery:
    """What hands in for one route."""

    def __init__(self, wanted: RoutedInterest) -> None:
        self._wanted = wanted
        self._taking: set[trio.CancelScope] = set()
        self._is_silent = False

    async def take(self, messages: list[Message]) -> None:
        """Hand messages in, unless it is silent, or becomes so meanwhile; durable on return."""
        if self._is_silent:
            return
        with trio.CancelScope() as scope:
            self._taking.add(scope)
            try:
                await self._wanted.take(messages)
            finally:
                self._taking.discard(scope)

    def silence(self) -> None:
        """Hand in nothing more, at once."""
        self._is_silent = True
        for scope in self._taking:
            scope.cancel()
