"""The audit: asks all authorities of a network for their newest heads, as any daemon may.

Of a network in shards it asks each one for all that the newest head stands for: leaves, slices, the guide.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Sequence

import trio

from hushcast_directory.client.directory_client import DirectoryClient
from hushcast_protocol.authorities.audit import Audit, AuditedAuthority, AuditedShards, audit, called
from hushcast_protocol.authorities.authority_set import Authorities, AuthorityContact
from hushcast_protocol.authorities.directory_requests import HeadAnswer
from hushcast_protocol.authorities.head_inside import inside_of
from hushcast_protocol.authorities.heads import HEADS_KEPT, Head, decode_head
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.errors import DecodeError, PeerError, Refusal
from hushcast_protocol.base.roster import Network
from hushcast_protocol.base.sharding import Sharding
from hushcast_protocol.shards.guides import PIECE_BITS, piece_bits, read_piece
from hushcast_protocol.shards.shard_requests import (
    AskLeaf,
    AskPiece,
    AskSlice,
    ShownLeaf,
    ShownPiece,
    ShownSlice,
)
from hushcast_protocol.shards.slices import read_leaf, read_slice
from hushcast_runtime.environment import Environment
from hushcast_runtime.transports.base import Transport, TransportError

_Ask = Callable[[Sharding, int], Awaitable[None]]

MAX_AUDITED = HEADS_KEPT  # epochs that one audit asks of
MAX_WALKS = 8  # parts asked of one authority at once: each takes a circuit


async def audit_all(
    env: Environment, transport: Transport, network: Network, pinned: Authorities, epochs: int
) -> Audit:
    """Return what all authorities show of the last so many epochs (1 to `MAX_AUDITED`), checked."""
    answers = await ask_all(env, transport, network, pinned.members, epochs)
    found = await env.compute(audit, network, pinned, answers)
    if found.newest is None or not any(one.bits for one in inside_of(found.newest).shards):
        return found
    walked: dict[bytes, AuditedShards] = {}

    async def walk(head: Head, member: AuthorityContact, name: str) -> None:
        client = DirectoryClient(env, transport, network.id, Address(member.address), member)
        walked[member.key] = await _Walk(env, network, client, head).walked(name)

    async with trio.open_nursery() as nursery:
        for member, answer in zip(pinned.members, answers, strict=True):
            if answer.problem is None:
                nursery.start_soon(walk, found.newest, member, answer.name)
    told = [walked[member.key].finding for member in pinned.members if member.key in walked]
    return dataclasses.replace(found, findings=[*found.findings, *told])


async def ask_all(
    env: Environment, transport: Transport, network: Network, members: Sequence[AuthorityContact], epochs: int
) -> list[AuditedAuthority]:
    """Return what each of them shows of the last so many epochs (1 to `MAX_AUDITED`), unchecked as yet."""
    found: dict[bytes, AuditedAuthority] = {}

    async def ask(number: int, member: AuthorityContact) -> None:
        name = called(number, member.key)
        client = DirectoryClient(env, transport, network.id, Address(member.address), member)
        try:
            found[member.key] = AuditedAuthority(name, await _shown(client, epochs))
        except (TransportError, PeerError, Refusal) as error:
            found[member.key] = AuditedAuthority(name, (), str(error))

    async with trio.open_nursery() as nursery:
        for number, member in enumerate(members, 1):
            nursery.start_soon(ask, number, member)
    return [found[member.key] for member in members]


async def _shown(client: DirectoryClient, epochs: int) -> list[HeadAnswer]:
    newest = await _one(client, None)
    if not newest.heads or epochs == 1:
        return [newest]
    last = decode_head(newest.heads[-1].head).epoch
    shown: list[HeadAnswer] = []
    after = max(0, last - epochs)
    while len(shown) < epochs:
        answer = await _one(client, after)
        if not answer.heads or decode_head(answer.heads[-1].head).epoch <= after:
            break
        shown.append(answer)
        after = decode_head(answer.heads[-1].head).epoch
    return shown or [newest]


async def _one(client: DirectoryClient, after: int | None) -> HeadAnswer:
    answer = await client.roster(after)
    if not isinstance(answer, HeadAnswer):
        raise DecodeError("it answers as a directory alone, without others")
    return answer


class _Walk:
    """All parts that a head stands for, asked of one authority."""

    def __init__(self, env: Environment, network: Network, client: DirectoryClient, head: Head) -> None:
        self._env = env
        self._network = network
        self._client = client
        self._head = head
        self._lacking = 0
        self._wrong: list[str] = []

    async def walked(self, name: str) -> AuditedShards:
        """Ask for all of them; return what came of it, with what the authority is called in findings."""
        limiter = trio.CapacityLimiter(MAX_WALKS)
        cuts = [sharding for sharding in inside_of(self._head).shards if sharding.bits]
        shards = [(sharding, number) for sharding in cuts for number in range(2**sharding.bits)]
        pieces = [(sharding, number) for sharding in cuts for number in range(2 ** piece_bits(sharding.bits))]
        async with trio.open_nursery() as nursery:
            for sharding, number in shards:
                nursery.start_soon(self._part, limiter, self._shard, "shard", sharding, number)
            for sharding, number in pieces:
                nursery.start_soon(self._part, limiter, self._piece, "piece of the guide", sharding, number)
        return AuditedShards(name, len(shards) + len(pieces), self._lacking, sorted(self._wrong))

    async def _part(
        self, limiter: trio.CapacityLimiter, ask: _Ask, what: str, sharding: Sharding, number: int
    ) -> None:
        async with limiter:
            try:
                await ask(sharding, number)
            except (TransportError, Refusal):
                self._lacking += 1
            except PeerError as error:
                self._wrong.append(f"{what} {number} of day {sharding.day}: {error}")

    async def _shard(self, sharding: Sharding, shard: int) -> None:
        shown = await self._client.part(AskLeaf(self._head.epoch, sharding.day, shard))
        assert isinstance(shown, ShownLeaf)
        leaf = read_leaf(shown.leaf, shown.path, sharding, shard)
        body = await self._client.part(AskSlice(sharding.day, shard))
        assert isinstance(body, ShownSlice)
        await self._env.compute(read_slice, body.body, leaf, sharding, self._network)

    async def _piece(self, sharding: Sharding, number: int) -> None:
        shown = await self._client.part(AskPiece(sharding.day, number))
        assert isinstance(shown, ShownPiece)
        read_piece(shown.body, shown.path, sharding, number << PIECE_BITS)
