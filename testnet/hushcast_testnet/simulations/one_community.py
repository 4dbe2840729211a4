"""A community that all brokers and nodes of a simulated network are in, and the keeper who admits them."""

from __future__ import annotations

from collections.abc import Iterable

from hushcast_brokers.community.charter_submission import hand_in
from hushcast_brokers.tree_request import BrokerContact
from hushcast_protocol.base.crypto.key_agreement import agreement_public
from hushcast_protocol.base.crypto.secrets import Randomness, Seed
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.community.charter import sign_charter
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_runtime.environment import Environment
from hushcast_runtime.transports.base import Transport


class OneCommunity:
    """Its keeper, and those of its members that are nodes."""

    def __init__(self, randomness: Randomness) -> None:
        self._keeper = Seed.draw(randomness)
        self._randomness = randomness
        self._members: list[PublicKey] = []
        self.key = self._keeper.public()

    def member(self) -> Seed:
        """Draw the key of one more node."""
        found = Seed.draw(self._randomness)
        self._members.append(found.public())
        return found

    async def begin(
        self,
        network: BrokersNetwork,
        root: BrokerContact,
        brokers: Iterable[PublicKey],
        transport: Transport,
        env: Environment,
    ) -> None:
        """Admit these brokers and all nodes drawn so far."""
        members = [agreement_public(key) for key in (*brokers, *self._members)]
        signed = sign_charter(self._keeper, network.id, 1, int(env.now()), members, self._randomness)
        verdict = await hand_in(network, root, signed, transport, env)
        assert verdict == "accepted", verdict
