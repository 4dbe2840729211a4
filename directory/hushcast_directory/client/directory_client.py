"""A daemon's requests to the directory, each over an anonymous connection of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from hushcast_protocol.authorities.directory_requests import (
    MAX_DIRECTORY_ANSWER,
    DirectoryAnswer,
    DirectoryRefusal,
    DirectoryRequest,
    Fetch,
    HeadAnswer,
    KeySuccession,
    RegisterRelay,
    RelayRegistered,
    Rosters,
    decode_directory_answer,
)
from hushcast_protocol.authorities.head_questions import (
    MAX_HEADS_ANSWER,
    AskHeads,
    Heads,
    decode_heads_answer,
)
from hushcast_protocol.authorities.name_work import NameWork
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import DecodeError, Refusal
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.base.versions import wires
from hushcast_protocol.base.versions.wires import LASTING
from hushcast_protocol.base.wire import PublicKey, Wire
from hushcast_protocol.shards.shard_requests import (
    AskCandidates,
    AskLeaf,
    AskPiece,
    AskSlice,
    PartAnswer,
    PartRequest,
    ShardUnavailable,
    ShownCandidates,
    ShownLeaf,
    ShownPiece,
    ShownSlice,
)
from hushcast_runtime.environment import Environment
from hushcast_runtime.transports.base import Transport
from hushcast_runtime.transports.channel import open_channel

ANSWER_TIMEOUT = 90.0  # seconds; to register, the directory first reaches the relay

AnswerT = TypeVar("AnswerT")

_ANSWERS: dict[type[PartRequest], type[PartAnswer]] = {
    AskLeaf: ShownLeaf,
    AskSlice: ShownSlice,
    AskPiece: ShownPiece,
    AskCandidates: ShownCandidates,
}


class ExpectedDirectory(Protocol):
    """Who a directory must prove to be."""

    @property
    def key(self) -> PublicKey:
        """Its key of now."""


class DirectoryClient:
    """Asks one directory; every method raises `TransportError`, a `PeerError` or `Refusal`."""

    def __init__(
        self,
        env: Environment,
        transport: Transport,
        network: bytes,
        address: Address,
        known: ExpectedDirectory,
        wire: Callable[[], int] = lambda: wires.spoken().highest,
    ) -> None:
        """`wire` says what the network speaks now."""
        self._env = env
        self._transport = transport
        self._network = network
        self._address = address
        self._known = known
        self._wire = wire

    async def register(self, descriptor: Signed, work: NameWork | None = None) -> None:
        """Hand in a descriptor; returns once the directory has reached the relay at its address."""
        if not isinstance(await self._ask(RegisterRelay(descriptor, work)), RelayRegistered):
            raise DecodeError("the directory answered something else than was asked")

    async def roster(self, after: int | None) -> Rosters | KeySuccession | HeadAnswer:
        """Return the first roster after an epoch, or the newest (`None`), unchecked as yet.

        A directory that has another key by now tells how it came to it instead; an authority shows heads.
        """
        answer = await self._ask(Fetch(after))
        if not isinstance(answer, Rosters | KeySuccession | HeadAnswer):
            raise DecodeError("the directory answered something else than was asked")
        return answer

    async def heads(self, after: int | None) -> Heads:
        """Return how one comes from the head of an epoch to the newest, unchecked as yet, in any wire."""
        return await self._say(AskHeads(after), decode_heads_answer, MAX_HEADS_ANSWER, LASTING)

    async def part(self, request: PartRequest) -> PartAnswer:
        """Return a part of a network in shards, unchecked as yet; `Refusal` where it is not shown there."""
        answer = await self._ask(request)
        if isinstance(answer, ShardUnavailable):
            raise Refusal("the directory does not show this part of the network")
        if not isinstance(answer, _ANSWERS[type(request)]):
            raise DecodeError("the directory answered something else than was asked")
        return answer

    async def _ask(self, request: DirectoryRequest) -> DirectoryAnswer:
        answer = await self._say(request, decode_directory_answer, MAX_DIRECTORY_ANSWER, self._wire())
        if isinstance(answer, DirectoryRefusal):
            raise Refusal(answer.reason)
        return answer

    async def _say(
        self, request: Wire, decode: Callable[[bytes], AnswerT], largest: int, wire: int
    ) -> AnswerT:
        link = Link.initiate(self._network, self._known.key, self._env.randomness, largest, wire=wire)
        isolation = self._env.isolation()
        channel, _ = await open_channel(self._transport, self._address, isolation, link, decode)
        try:
            await channel.send(request)
            return await channel.one(ANSWER_TIMEOUT)
        finally:
            await channel.aclose()
