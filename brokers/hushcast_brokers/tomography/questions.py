"""Questions without a name: a link for as long as it takes to ask the service one thing."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import trio

from hushcast_brokers.held_tree import NO_TREE
from hushcast_brokers.tree_request import ANSWER_WITHIN, BrokerContact
from hushcast_protocol.base.crypto.proof_of_work import ProofOfWork, mint
from hushcast_protocol.base.errors import DecodeError, Refusal
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.brokers.broker_tree import BrokerTree, check_tree
from hushcast_protocol.brokers.frames import NewTree
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_protocol.brokers.tomography.frames import (
    MAX_TOMOGRAPHY_FRAME,
    Ask,
    AskReply,
    FromService,
    Ping,
    Pong,
    decode_from_service,
)
from hushcast_protocol.brokers.tomography.questions import (
    TomographyAnswer,
    TomographyQuestion,
    question_digest,
    read_answer,
)
from hushcast_runtime.environment import Environment
from hushcast_runtime.transports.base import Transport, TransportError
from hushcast_runtime.transports.channel import Channel, open_channel

NOT_READY = "not-ready"
"""Reason of a refusal: the service holds no tree yet."""


class TomographyContact(NamedTuple):
    """Whom to ask, and how."""

    network: BrokersNetwork
    service: BrokerContact
    transport: Transport
    env: Environment


async def ask_service(
    asker: TomographyContact, make: Callable[[BrokerTree], TomographyQuestion]
) -> TomographyAnswer:
    """Return the service's answer to a question, which is made of the tree that the service goes by.

    A stamp is made where one is asked for. Raises `Refusal` with the reason, `PeerError` where what came does
    not hold, and `TransportError`.
    """
    env = asker.env
    link = Link.initiate(
        asker.network.id, asker.service.key, env.randomness, MAX_TOMOGRAPHY_FRAME, view=NO_TREE
    )
    channel, _ = await open_channel(
        asker.transport, asker.service.address, env.isolation(), link, decode_from_service
    )
    try:
        with trio.move_on_after(ANSWER_WITHIN):
            question = make(await _tree(channel, asker.network))
            answered = await _asked(channel, question, None)
            if answered.reason == "stamp":
                epoch, content = asker.network.calendar.epoch(env.now()), question_digest(question)
                stamp = await env.compute(
                    mint, asker.service.key, epoch, content, answered.difficulty, env.randomness
                )
                answered = await _asked(channel, question, stamp)
            if answered.answer is None:
                raise Refusal(answered.reason or "form")
            return read_answer(answered.answer, asker.service.key, question, env.now())
    finally:
        await channel.aclose()
    raise TransportError("the tomography service did not answer in time")


async def _tree(channel: Channel[FromService], network: BrokersNetwork) -> BrokerTree:
    await channel.send(Ping())
    tree: BrokerTree | None = None
    while batch := await channel.receive():
        for frame in batch:
            if isinstance(frame, NewTree):
                tree = check_tree(frame.tree, network)
            elif isinstance(frame, Pong):
                if tree is None:
                    raise Refusal(NOT_READY)
                return tree
    raise TransportError("the tomography service closed the link")


async def _asked(
    channel: Channel[FromService], question: TomographyQuestion, stamp: ProofOfWork | None
) -> AskReply:
    await channel.send(Ask(1, question, is_watch=False, stamp=stamp))
    while batch := await channel.receive():
        for frame in batch:
            if isinstance(frame, AskReply):
                return frame
            if not isinstance(frame, NewTree):
                raise DecodeError("the tomography service says what nobody asked for")
    raise TransportError("the tomography service closed the link")
