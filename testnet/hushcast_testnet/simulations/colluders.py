"""Colluders that lose messages selectively: each holds a message until the others had time to see it.

Two origins get each publication. If colluders hold two copies of a message they lose both; all others they
pass on. A probe with a single copy is lost only if it climbs into several trees through them: a sole
subscriber of a topic that probed with one copy would never miss one.
"""

from __future__ import annotations

from collections.abc import Callable

import trio

from hushcast_node.relay_role import RelayRole
from hushcast_protocol.content.hops import Hop
from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay.forwarding import ForwardingDecision, ForwardingOutcome
from hushcast_testnet.simulations.corrupt_router import CorruptRouter

HOLD = 5.0  # virtual seconds: both copies of a publication are dropped at once


class Colluders:
    """The knowledge that they share."""

    def __init__(self) -> None:
        self._copies: dict[bytes, set[tuple[bytes, bytes]]] = {}
        self._passed: set[bytes] = set()

    def is_passed(self, message: bytes) -> bool:
        """Tell whether they let a message through."""
        return message in self._passed

    def see(self, message: bytes, relay: bytes, previous: bytes) -> bool:
        """Note a copy at one of them; return whether it is new."""
        copies = self._copies.setdefault(message, set())
        is_new = (relay, previous) not in copies
        copies.add((relay, previous))
        return is_new

    def let_through(self, message: bytes) -> bool:
        """Decide on a message that was held: it passes if they have but one copy."""
        if len(self._copies[message]) > 1:
            return False
        self._passed.add(message)
        return True


class SelectiveColluder(CorruptRouter):
    """One colluder's decisions: it confirms everything, and asks the others before it sends anything on."""

    def __init__(self, relay: RelayRole, together: Colluders) -> None:
        """Take the place of the router of a relay."""
        super().__init__(relay.forwarding._router)
        self._of = relay
        self._together = together

    def route(
        self, message: Message, previous: bytes, now: float, only: Callable[[Hop], bool] | None = None
    ) -> ForwardingDecision:
        """Confirm a message; what becomes of it is decided when the others have had time to see it."""
        if self._together.is_passed(message.id):
            return super().route(message, previous, now, only)
        if self._together.see(message.id, self._of.id, previous):
            self._of.peers._spawn(self._hold, message, previous)
        return ForwardingDecision(ForwardingOutcome.DUPLICATE)

    async def _hold(self, message: Message, previous: bytes) -> None:
        await trio.sleep(HOLD)
        if self._together.let_through(message.id):
            await self._of.forwarding.route([message], previous)
