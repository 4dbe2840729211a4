"""Auditing: asks all authorities of a network for their newest heads, as any daemon may."""

from __future__ import annotations

from collections.abc import Sequence

import trio

from hushcast_directory.archive import HEADS_KEPT
from hushcast_directory.client import DirectoryClient
from hushcast_protocol.authorities.auditing import Answers, called
from hushcast_protocol.authorities.heads import decode_head
from hushcast_protocol.authorities.members import Member
from hushcast_protocol.authorities.requests import Agreed
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.errors import DecodeError, PeerError, Refusal
from hushcast_protocol.base.roster import Network
from hushcast_runtime.environment import Environment
from hushcast_runtime.transports.base import Transport, TransportError

MAX_AUDITED = HEADS_KEPT  # epochs that one audit asks of


async def ask_all(
    env: Environment, transport: Transport, network: Network, members: Sequence[Member], epochs: int
) -> list[Answers]:
    """Return what each of them shows of the last so many epochs (1 to `MAX_AUDITED`), unchecked as yet."""
    found: dict[bytes, Answers] = {}

    async def ask(number: int, member: Member) -> None:
        name = called(number, member.key)
        client = DirectoryClient(env, transport, network.id, Address(member.address), member)
        try:
            found[member.key] = Answers(name, await _shown(client, epochs))
        except (TransportError, PeerError, Refusal) as error:
            found[member.key] = Answers(name, (), str(error))

    async with trio.open_nursery() as nursery:
        for number, member in enumerate(members, 1):
            nursery.start_soon(ask, number, member)
    return [found[member.key] for member in members]


async def _shown(client: DirectoryClient, epochs: int) -> list[Agreed]:
    newest = await _one(client, None)
    if not newest.heads or epochs == 1:
        return [newest]
    last = decode_head(newest.heads[-1].head).epoch
    shown: list[Agreed] = []
    after = max(0, last - epochs)
    while len(shown) < epochs:
        answer = await _one(client, after)
        if not answer.heads or decode_head(answer.heads[-1].head).epoch <= after:
            break
        shown.append(answer)
        after = decode_head(answer.heads[-1].head).epoch
    return shown or [newest]


async def _one(client: DirectoryClient, after: int | None) -> Agreed:
    answer = await client.roster(after)
    if not isinstance(answer, Agreed):
        raise DecodeError("it answers as a directory alone, without others")
    return answer
