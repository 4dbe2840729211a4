"""Asks relays, or authorities, for a part of a network in shards, and checks what they show.

Each request has a circuit of its own. Who shows other bytes than the authorities agreed on is not asked again
on that day.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple, TypeVar

import trio

from hushcast_directory.client.roster_source import RosterSource
from hushcast_overlay.connector import Connector
from hushcast_overlay.shards.shard_reader import READING, ShardReader
from hushcast_protocol.base.addresses import Address, parse_address
from hushcast_protocol.base.candidate_root import CandidateRoot
from hushcast_protocol.base.errors import DecodeError, PeerError, Refusal
from hushcast_protocol.base.roster import Network, Relay
from hushcast_protocol.base.sharding import Sharding
from hushcast_protocol.base.wire import RelayId, encode
from hushcast_protocol.shards.candidates import CandidateList, read_candidates
from hushcast_protocol.shards.guides import Guide, read_whole_piece
from hushcast_protocol.shards.shard_requests import (
    AskCandidates,
    AskLeaf,
    AskPiece,
    AskSlice,
    PartAnswer,
    PartRequest,
    ShardRequest,
    ShardUnavailable,
    ShownCandidates,
    ShownLeaf,
    ShownPiece,
    ShownSlice,
    decode_shard_answer,
)
from hushcast_protocol.shards.slices import Leaf, Shard, read_leaf
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.logs import log
from hushcast_runtime.transports.base import TransportError

MOST_ASKED = 5  # relays for one part; after these an authority is asked
PATIENCE = 20.0  # seconds after which another one is asked as well; a first contact takes one to five
ANSWER_TIMEOUT = 60.0  # seconds in which a part comes once the link is open: a slice has 150 kB
LONGEST_DELAY = 3.0  # seconds at random before each next step, so that they do not show as one daemon's

Parts = tuple[tuple[Guide, ...], ...]
"""The guides of each shard of a piece."""
T = TypeVar("T")
ShownT = TypeVar("ShownT", ShownLeaf, ShownSlice, ShownPiece)


class ShardContact(NamedTuple):
    """A relay to ask."""

    relay: RelayId
    address: Address


def asked_guide(guide: Guide) -> ShardContact:
    """Return a relay that a checked piece of a guide names."""
    return ShardContact(guide.relay, parse_address(guide.address))


def asked_relay(relay: Relay) -> ShardContact:
    """Return a relay of a shard."""
    return ShardContact(relay.id, relay.address)


class ShardFetcher:
    """Fetches for one daemon. Methods raise `TransportError`, a `PeerError` or `Refusal`.

    They ask some of the relays in `whom`; where none of them shows it, or there is none, an authority.
    """

    def __init__(
        self,
        network: Network,
        connector: Connector,
        source: RosterSource,
        env: Environment,
        counters: Counters,
        reading: ShardReader = READING,
    ) -> None:
        self.reading = reading
        self._network = network
        self._connector = connector
        self._source = source
        self._env = env
        self._counters = counters
        self._patience = min(PATIENCE, network.calendar.lead / 6)
        self._longest_delay = min(LONGEST_DELAY, network.calendar.lead / 100)
        self._liars: dict[int, set[RelayId]] = {}  # by the day of a cut
        self._silent: dict[int, set[RelayId]] = {}

    async def leaf(
        self, sharding: Sharding, epoch: int, shard: int, whom: Iterable[ShardContact]
    ) -> tuple[Leaf, ShownLeaf]:
        """Return the leaf of a shard that a head of an epoch stands for with `sharding`."""

        def read(answer: PartAnswer) -> tuple[Leaf, ShownLeaf]:
            if not isinstance(answer, ShownLeaf):
                raise DecodeError("another part of a network was shown than the leaf asked for")
            return read_leaf(answer.leaf, answer.path, sharding, shard), answer

        return self._counted(await self._fetch(AskLeaf(epoch, sharding.day, shard), read, whom))

    async def slice(
        self, sharding: Sharding, leaf: Leaf, whom: Iterable[ShardContact]
    ) -> tuple[Shard, ShownSlice]:
        """Return the relays of a shard by a checked leaf of it."""

        def read(answer: PartAnswer) -> tuple[Shard, ShownSlice]:
            if not isinstance(answer, ShownSlice):
                raise DecodeError("another part of a network was shown than the slice asked for")
            return self.reading.slice(answer, leaf, sharding, self._network)

        return self._counted(await self._fetch(AskSlice(sharding.day, leaf.shard), read, whom))

    async def piece(
        self, sharding: Sharding, number: int, whom: Iterable[ShardContact]
    ) -> tuple[Parts, ShownPiece]:
        """Return the guides of each shard of a piece."""

        def read(answer: PartAnswer) -> tuple[Parts, ShownPiece]:
            if not isinstance(answer, ShownPiece):
                raise DecodeError("another part of a network was shown than the piece of the guide asked for")
            return read_whole_piece(answer.body, answer.path, sharding, number), answer

        return self._counted(await self._fetch(AskPiece(sharding.day, number), read, whom))

    async def candidates(self, told: CandidateRoot, shard: int) -> CandidateList:
        """Return a candidate list, from an authority."""

        def read(answer: PartAnswer) -> CandidateList:
            if not isinstance(answer, ShownCandidates):
                raise DecodeError("another part of a network was shown than the candidates asked for")
            return read_candidates(answer.body, answer.path, told, shard)

        found = await self._ask_authorities(AskCandidates(told.day, shard), read)
        self._counters.add("bytes_fetched", len(encode(found)))
        return found

    def _counted(self, taken: tuple[T, ShownT]) -> tuple[T, ShownT]:
        self._counters.add("bytes_fetched", len(encode(taken[1])))
        return taken

    async def pause(self) -> None:
        """Wait some seconds at random between two steps that follow each other."""
        await trio.sleep(self._env.uniform(0.0, self._longest_delay))

    def forget(self, staying: Collection[int]) -> None:
        """Forget who is passed over, but for these days."""
        for known in (self._liars, self._silent):
            for day in [day for day in known if day not in staying]:
                del known[day]

    async def _fetch(
        self, request: ShardRequest, read: Callable[[PartAnswer], T], whom: Iterable[ShardContact]
    ) -> T:
        relays = self._in_turn(request.day, whom)
        if relays:
            if found := await self._ask_relays(request, read, relays):
                return found[0]
            self._counters.add("shard_relays_failed")
            await self.pause()
        return await self._ask_authorities(request, read)

    def _in_turn(self, day: int, whom: Iterable[ShardContact]) -> list[ShardContact]:
        """Return whom to ask, in random order; those who did not answer before come last."""
        liars, silent = self._liars.get(day, set()), self._silent.get(day, set())
        usable = [asked for asked in whom if asked.relay not in liars]
        usable = self._env.sample(usable, len(usable))
        return sorted(usable, key=lambda asked: asked.relay in silent)[:MOST_ASKED]

    async def _ask_relays(
        self, request: ShardRequest, read: Callable[[PartAnswer], T], relays: list[ShardContact]
    ) -> list[T]:
        """Return what the first of them shows that is right; nothing if none does."""
        found: list[T] = []
        async with trio.open_nursery() as nursery:

            async def ask(asked: ShardContact, answered: trio.Event) -> None:
                try:
                    found.append(await self._ask(asked, request, read))
                    nursery.cancel_scope.cancel()
                except (TransportError, PeerError) as error:
                    log.info("a relay does not show a part of its shard", reason=str(error))
                answered.set()

            for asked in relays:
                answered = trio.Event()
                nursery.start_soon(ask, asked, answered)
                with trio.move_on_after(self._patience) as patience:
                    await answered.wait()
                if patience.cancelled_caught:
                    # Who answers first ends the others: what these would have come to is not heard.
                    self._pass_over(request.day, asked.relay)
        return found

    async def _ask(self, asked: ShardContact, request: ShardRequest, read: Callable[[PartAnswer], T]) -> T:
        try:
            answer = await self._connector.ask(
                asked.relay, asked.address, request, decode_shard_answer, ANSWER_TIMEOUT
            )
            if isinstance(answer, ShardUnavailable):
                raise Refusal("it has not got it, or serves too many")
            found = await self._env.compute(read, answer)
            self._silent.get(request.day, set()).discard(asked.relay)
            return found
        except Refusal as error:
            raise TransportError(str(error)) from None
        except TransportError:
            self._pass_over(request.day, asked.relay)
            raise
        except PeerError:
            self._counters.add("shard_parts_refused")
            self._liars.setdefault(request.day, set()).add(asked.relay)
            raise

    def _pass_over(self, day: int, relay: RelayId) -> None:
        """Ask a relay that did not answer behind all others from now on."""
        self._silent.setdefault(day, set()).add(relay)

    async def _ask_authorities(self, request: PartRequest, read: Callable[[PartAnswer], T]) -> T:
        taken: list[T] = []
        await self._source.ask(request, lambda answer: taken.append(read(answer)))
        return taken[0]
