"""The dropper: hands a message to random origins; publications and probes alike, so that nobody can tell.

Where a connection to a random relay is ready it goes over that, and over a fresh circuit otherwise.
"""

from __future__ import annotations

from collections.abc import Collection

import trio

from hushcast_overlay.connector import Connector
from hushcast_overlay.routes.ready_connections import ReadyConnection, ReadyConnections
from hushcast_overlay.shards.shards import Shards
from hushcast_protocol.base.errors import PeerError, Refusal
from hushcast_protocol.base.roster import Relay
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay.frame_directions import decode_receipt
from hushcast_protocol.overlay.frames import Drop
from hushcast_protocol.overlay.profile import Profile
from hushcast_runtime.carriers.carrier import Handover
from hushcast_runtime.environment import Environment
from hushcast_runtime.logs import log
from hushcast_runtime.transports.base import TransportError


class MissingReceipts(Refusal):
    """In some shard of a wide topic nobody gave a receipt; in others somebody may have."""


class Dropper:
    """Drops one stream of messages of one daemon: what it publishes, or one subscription's probes."""

    def __init__(
        self,
        profile: Profile,
        shards: Shards,
        connector: Connector,
        env: Environment,
        ready: ReadyConnections,
    ) -> None:
        self._profile = profile
        self._shards = shards
        self._connector = connector
        self._env = env
        self._ready = ready

    def beside(self, ready: ReadyConnections) -> Dropper:
        """Return the dropper of another stream, which has these connections ready."""
        return Dropper(self._profile, self._shards, self._connector, self._env, ready)

    async def origins(self, message: Message, copy: int = 0) -> list[Relay]:
        """Return the relays to drop a message at; raise `Refusal` where there is none, or none is known.

        `copy` says in which of the shards of a wide topic.
        """
        try:
            near = await self._shards.find(message.day, message.tokens[0], copy)
        except (TransportError, PeerError) as error:
            raise Refusal(f"which relays take the message could not be fetched: {error}") from error
        return near.origins()

    async def drop(
        self, message: Message, handover: Handover, taken: Collection[RelayId] = (), width: int = 0
    ) -> None:
        """Drop it once for each origin wanted that has not `taken` it yet, all at the same time.

        A message of a wide topic is dropped so in each of its shards of its day. Raises `Refusal` where there
        is nobody to drop at; `MissingReceipts` if after all drops a shard of several has nobody who took it.
        """
        copies = self._shards.copies(message.day, message.tokens[0], width)
        if len(copies) == 1:
            await self._drop_in(copies[0], message, handover, taken)
            return
        shards = [_Shard(handover) for _ in copies]
        async with trio.open_nursery() as nursery:
            for copy, shard in zip(copies, shards, strict=True):
                nursery.start_soon(self._drop_in_one, copy, message, shard, taken)
        missing = [shard for shard in shards if not shard.has_taken]
        if missing:
            why = missing[0].reason
            raise MissingReceipts(f"in {len(missing)} of {len(shards)} shards nobody took the message: {why}")

    async def _drop_in_one(
        self, copy: int, message: Message, shard: _Shard, taken: Collection[RelayId]
    ) -> None:
        """Drop it in one shard of several; the others go on where that fails."""
        try:
            own = {origin.id for origin in await self.origins(message, copy)} & set(taken)
            shard.has_taken = bool(own)
            await self._drop_in(copy, message, shard, own)
        except Refusal as refusal:
            shard.reason = refusal.reason

    async def drop_anew(
        self, message: Message, handover: Handover, avoided: Collection[RelayId], times: int
    ) -> None:
        """Drop so many times for each origin wanted, at others than these where there are any.

        Raises `Refusal` where there is nobody to drop at.
        """
        origins = await self.origins(message)
        others = [origin for origin in origins if origin.id not in avoided]
        await self._drop_at(others or origins, message, handover, self._profile.origins * times)

    async def _drop_in(
        self, copy: int, message: Message, handover: Handover, taken: Collection[RelayId]
    ) -> None:
        origins = [origin for origin in await self.origins(message, copy) if origin.id not in taken]
        await self._drop_at(origins, message, handover, self._profile.origins - len(taken))

    async def _drop_at(self, origins: list[Relay], message: Message, handover: Handover, wanted: int) -> None:
        # Uniform over all relays: to leave out the publisher's own would name it in time, and to leave out
        # those that it suspects of losing messages would tell what it subscribes to.
        pool = self._env.sample(origins, len(origins))
        async with trio.open_nursery() as nursery:
            for _ in range(min(wanted, len(pool))):
                nursery.start_soon(self._drop, message, handover, pool)

    async def _drop(self, message: Message, handover: Handover, pool: list[Relay]) -> None:
        manner = self._shards.manner
        for attempt in range(manner.attempts):
            if not pool:
                return
            origin, ready = self._drawn(pool)
            if attempt:
                await trio.sleep(self._env.uniform(0.0, manner.longest_delay))
            handover.note_try(origin.id)
            try:
                answer = await self._connector.drop(
                    origin,
                    Drop(message, None),
                    decode_receipt,
                    manner.receipt_within,
                    claim=ready.claim if ready is not None else None,
                )
            except (TransportError, PeerError) as error:
                log.info("an origin gave no receipt", reason=str(error))
                handover.note_failure(f"no relay gave a receipt: {error}")
                continue
            if answer.verdict == "accepted":
                handover.note_receipt(origin.id)
                return
            handover.note_failure(f"relays refuse the message: {answer.verdict}")

    def _drawn(self, pool: list[Relay]) -> tuple[Relay, ReadyConnection | None]:
        """Take an origin out of those left, which are in random order: that of a slot where there is any.

        Whether a connection lives in the slot does not matter: else whoever ends those at honest relays
        would choose the origins.
        """
        ready = self._ready.take({relay.id for relay in pool})
        if ready is None:
            return pool.pop(), None
        place = next(index for index, relay in enumerate(pool) if relay.id == ready.relay)
        return pool.pop(place), ready


class _Shard:
    """What hears how the drops of a message go in one shard of several; passes it on."""

    def __init__(self, handover: Handover) -> None:
        self._handover = handover
        self.has_taken = False
        """Whether one of its relays has the message."""
        self.reason = "no relay gave a receipt"

    def note_try(self, origin: RelayId) -> None:
        self._handover.note_try(origin)

    def note_receipt(self, origin: RelayId) -> None:
        self.has_taken = True
        self._handover.note_receipt(origin)

    def note_failure(self, reason: str) -> None:
        self.reason = reason
        self._handover.note_failure(reason)
