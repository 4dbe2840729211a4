"""Made-up children: brokers that ask those above for what compares a child that there is not with their own.

Their operators stop them, and speak for them. The key of a made-up child is their own, so with its factor and
those of their children they have the keys of all of these. What they are given is written down beside what
their daemons saw, under the made-up child's key.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path as File

from hushcast_protocol.base import ground_truth, observations
from hushcast_protocol.base.addresses import memory_address
from hushcast_protocol.base.crypto.key_agreement import agreement_key
from hushcast_protocol.base.crypto.secrets import AgreementKey, Secret
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.base.roster import RosterView
from hushcast_protocol.base.wire import PublicKey, encode
from hushcast_protocol.brokers.broker_tree import BrokerTree
from hushcast_protocol.brokers.frames import MAX_BROKER_FRAME, FromAbove, RequestAnswer, decode_from_above
from hushcast_protocol.brokers.full.aggregation import Factors, asking, unblinded
from hushcast_protocol.brokers.full.layer_keys import Keyring
from hushcast_protocol.brokers.full.layer_positions import LayerPositions
from hushcast_protocol.brokers.full.layered_word import LayeredWord, decode_layered
from hushcast_protocol.brokers.full.layers import LayerPath, own_layers
from hushcast_protocol.brokers.privacy import read_privacy
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.channel import Channel, open_channel
from hushcast_testnet.simulations.broker_members import BrokerKeys, BrokersWorld

AT_ONCE = 64  # questions under way

Wanted = tuple[int, LayerPath]
"""The factor of a day, for a path."""


class MadeUpChild:
    """A child that one broker, which does not run any more, makes up."""

    def __init__(self, world: BrokersWorld, keys: BrokerKeys, tree: BrokerTree) -> None:
        self._world, self._keys, self._tree = world, keys, tree
        self._env = world.environment(f"{keys.name}-made-up")
        self._privacy = read_privacy(world.network.profile)
        self._ring = Keyring(self._privacy.action, agreement_key(keys.seed), world.network.id)
        self._above = LayerPositions(tree).above(keys.seed.public())

    async def ask(self, traces: File) -> None:
        """Ask for all factors that it takes; `traces` has what the broker's daemon saw."""
        own = AgreementKey(self._env.randomness(AgreementKey.LENGTH))
        tracer = self._world.tracer(f"{self._keys.name}-made-up", own.public().hex(), self._env)
        tracer.tell(ground_truth.Invented(self._keys.seed.public()))
        child = Keyring(self._privacy.action, own, self._world.network.id)
        broker = self._ring.public
        left = {(item.day, _left(item, broker)) for item in _shown(traces, self._keys.name)}
        for day in sorted({day for day, _ in left}):
            number = child.number(b"made up")
            path = own_layers(child.public, self._above, self._privacy.layers - 1, number)
            left.add((day, path))
            for layer in path:
                agreed = child.shared(layer.target, day).route.reveal()
                tracer.observe(observations.Agreed(day, child.public, layer.target, agreed))
        for (day, path), key in await self._given(sorted(left, key=lambda one: (one[0], encode(one[1])))):
            tracer.observe(observations.Compared(day, encode(path), key.reveal()))

    async def _given(self, wanted: Sequence[Wanted]) -> list[tuple[Wanted, Secret]]:
        """Return the factors that those above give; a refusal is an answer, too."""
        parent = next(one for one in self._world.brokers if one.name == self._keys.parent)
        link = Link.initiate(
            self._world.network.id,
            parent.seed.public(),
            self._env.randomness,
            MAX_BROKER_FRAME,
            self._keys.seed,
            RosterView(self._tree.version, self._tree.digest),
        )
        address = memory_address(parent.service.public())
        transport = self._world.wires.transport()
        channel, _ = await open_channel(transport, address, self._env.isolation(), link, decode_from_above)
        try:
            found: list[tuple[Wanted, Secret]] = []
            for at in range(0, len(wanted), AT_ONCE):
                some = dict(enumerate(wanted[at : at + AT_ONCE], at + 1))
                for serial, (day, path) in some.items():
                    await channel.send(asking(self._ring.action, self._ring.public, serial, day, path))
                for answer in await _answers(channel, len(some)):
                    if isinstance(answer, Factors):
                        one = some[answer.serial]
                        found.append((one, self._read(one, answer)))
            return found
        finally:
            await channel.aclose()

    def _read(self, of: Wanted, answer: Factors) -> Secret:
        return unblinded(self._ring, self._above, self._privacy.layers, *of, answer).route


async def _answers(channel: Channel[FromAbove], count: int) -> list[RequestAnswer | Factors]:
    found: list[RequestAnswer | Factors] = []
    while len(found) < count:
        batch = await channel.receive()
        if not batch:
            raise TransportError("the parent closed the link before it answered")
        found += [frame for frame in batch if isinstance(frame, RequestAnswer | Factors)]
    return found


def _shown(traces: File, name: str) -> Iterator[LayeredWord]:
    """Yield the items that children showed a broker."""
    with (traces / f"{name}.observations.jsonl").open() as lines:
        for line in lines:
            row = json.loads(line)
            if row["kind"] == "asked":
                yield decode_layered(bytes.fromhex(row["filter"]))
            elif row["kind"] == "advertised" and "child" in row:
                yield from (decode_layered(bytes.fromhex(shown)) for shown in row["show"])


def _left(item: LayeredWord, broker: PublicKey) -> LayerPath:
    return tuple(layer for layer in item.layers if layer.target != broker)
