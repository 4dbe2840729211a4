"""Daemons of a network that is cut into shards, in one process, with an authority that only shows its head.

The head, the cut and what daemons make of them are real. The authority reaches no relay and agrees with
nobody. All daemons share what each would check and hold itself (`hushcast_testnet.simulations.record_pool`).
"""

from __future__ import annotations

import trio

from benchmarks.relay.memory import BEGIN, NETWORK, Daemons, described
from hushcast_directory.client.pinned_directories import RosterChecks
from hushcast_overlay.relay.identity import Identity
from hushcast_overlay.shards.shard_reader import ShardReader
from hushcast_protocol.authorities.authority_set import Authorities, AuthorityContact
from hushcast_protocol.authorities.beacon import NOTHING
from hushcast_protocol.authorities.directory_requests import (
    DirectoryAnswer,
    DirectoryRequest,
    Fetch,
    HeadAnswer,
    RegisterRelay,
    RelayRegistered,
)
from hushcast_protocol.authorities.head_inside import HeadInside
from hushcast_protocol.authorities.heads import (
    AssentBody,
    CertifiedHead,
    Head,
    IndexedSignature,
    assent_to,
    head_digest,
)
from hushcast_protocol.base.addresses import memory_address
from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.roster import GENESIS, descriptor_digest
from hushcast_protocol.base.shard_count import bits_for
from hushcast_protocol.base.wire import encode
from hushcast_protocol.shards.shard_cut import Cut, cut
from hushcast_protocol.shards.shard_requests import (
    AskCandidates,
    AskLeaf,
    AskSlice,
    ShardAnswer,
    ShardRequest,
    ShardUnavailable,
    ShownLeaf,
    ShownPiece,
    ShownSlice,
)
from hushcast_protocol.shards.slices import CutRelay
from hushcast_runtime.storage.store import MemoryStore
from hushcast_runtime.transports.memory import CallAt
from hushcast_testnet.simulations.record_pool import Pool, PooledStore, shared_checks, shared_reading

SETTLED_AFTER = 200.0  # virtual seconds in which each relay has fetched its own shard, at a moment of its own


class CutDaemons(Daemons):
    """Relays in shards of so many in the mean."""

    def __init__(self, count: int, shard_size: int, call_at: CallAt | None = None) -> None:
        """There are more than 1.41 times `shard_size` relays."""
        super().__init__(count, call_at)
        self._pool = Pool()
        self._checks, self._reading = shared_checks(), shared_reading()
        self._descriptors: dict[bytes, Signed] = {}
        self._shown: dict[int, ShownSlice] = {}
        relays = [self._describe(identity) for identity in self._identities]
        calendar = NETWORK.calendar
        self._epoch, day = calendar.epoch(BEGIN), calendar.day(BEGIN)
        bits = bits_for(count, shard_size)
        assert bits
        self.cut: Cut = cut(NETWORK.id, day, digest(Domain.BEACON, bytes(32)), bits, relays)
        self._leaves = self.cut.leaves({relay: 0 for relay, *_ in relays})
        self._agreed = self._agree(shard_size, count)

    def checks(self) -> RosterChecks:
        """Return checks that are each done once."""
        return self._checks

    def reading(self) -> ShardReader:
        """Return readings that are each done once."""
        return self._reading

    def store(self) -> MemoryStore:
        """Return a store whose large records all share."""
        return PooledStore(self._pool)

    async def start(self, nursery: trio.Nursery) -> None:
        """Start all, and return when they hold their own shards."""
        await super().start(nursery)
        await trio.sleep(SETTLED_AFTER)

    def _describe(self, identity: Identity) -> CutRelay:
        descriptor, signed = described(identity)
        known = descriptor_digest(signed.body)
        self._descriptors[known] = signed
        return descriptor.relay, known, 0

    def sign(self) -> None:
        """There is nothing to be signed: it shows what an authority would from the start."""

    def _agree(self, shard_size: int, count: int) -> HeadAnswer:
        key = self.seed.public()
        authorities = Authorities.of([AuthorityContact(key, memory_address(key))], 1, shard_size=shard_size)
        root = digest(Domain.LISTING, b"nobody asks for it")
        inside = HeadInside(root, count, NOTHING, (), (self.cut.sharding(self._leaves),))
        body = encode(Head(NETWORK.id, self._epoch, GENESIS, authorities, None, encode(inside)))
        given = assent_to(self.seed, AssentBody(NETWORK.id, self._epoch, head_digest(body)))
        return HeadAnswer((CertifiedHead(body, (IndexedSignature(0, given),)),), (), (), False, None)

    def answer(self, request: DirectoryRequest) -> DirectoryAnswer:
        """Return what an authority would."""
        if isinstance(request, RegisterRelay):
            return RelayRegistered()
        if isinstance(request, Fetch):
            is_new = request.after is None or request.after < self._epoch
            return self._agreed if is_new else HeadAnswer((), (), (), False, None)
        assert not isinstance(request, AskCandidates)  # nobody is without its part of the roster here
        return self._part(request)

    def _part(self, request: ShardRequest) -> ShardAnswer:
        if isinstance(request, AskLeaf):
            tree = self._leaves.tree
            return ShownLeaf(self._leaves.bodies[request.shard], tree.path(request.shard))
        if isinstance(request, AskSlice):
            if request.shard not in self._shown:
                body = self.cut.slice(request.shard, self._descriptors.get)
                assert body is not None
                self._shown[request.shard] = ShownSlice(body)
            return self._shown[request.shard]
        body = self.cut.piece(request.number, self._descriptors.get)
        return ShardUnavailable() if body is None else ShownPiece(body, self.cut.guides.path(request.number))
