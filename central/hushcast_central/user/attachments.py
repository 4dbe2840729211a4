"""Attachments: receives what waits for a pseudonym, hands it in, and confirms what is durable.

It confirms at moments that are drawn, and shows life at such. A user's pseudonyms are not to be tied, and
while its daemon is busy with what one of them brings others would answer later.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import trio

from hushcast_central.user.pseudonym import Pseudonym
from hushcast_central.user.receiver import Receiver
from hushcast_central.user.user_links import ANSWER_TIMEOUT, ProxyConversation
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, PeerError, unraised
from hushcast_protocol.central import request_proofs
from hushcast_protocol.central.frames import AttachAnswer, Delivery, Ping, Pong, ToUser
from hushcast_protocol.central.inner_message import message_inside
from hushcast_protocol.central.profile import CentralProfile
from hushcast_protocol.central.rerouting import unwrap
from hushcast_protocol.content.messages import Message
from hushcast_runtime.context import Context
from hushcast_runtime.exception_groups import ungrouped
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.drawn_answers import DrawnAnswers

OPENED_AT_ONCE = 32  # deliveries of one read that are opened in one step, some 8 ms
PING_EVERY = 60.0  # seconds without a word after which a sign of life is asked for


@dataclass
class _Attached:
    """What is known of one attachment."""

    talk: ProxyConversation
    receiver: Receiver
    pseudonym: Pseudonym
    answers: DrawnAnswers
    chain: bytes
    """What proves all that came."""
    number: int = 0
    """How many came."""
    chains: dict[int, bytes] = field(default_factory=dict)
    """What proves what is to be acknowledged, by how many that are."""


class UserAttachments:
    """The attachments of one daemon's pseudonyms."""

    def __init__(self, profile: CentralProfile, context: Context) -> None:
        self._profile = profile
        self._env = context.env
        self._counters = context.counters

    async def serve(
        self,
        talk: ProxyConversation,
        attached: AttachAnswer,
        receiver: Receiver,
        pseudonym: Pseudonym,
        until_quiet: float | None = None,
    ) -> None:
        """Receive until the link ends, by a `TransportError` or `PeerError`, or what takes messages fails.

        Or, where that is given, until nothing has come for so many seconds.
        """
        answers = DrawnAnswers(self._env, talk.manner.acknowledges_within)
        one = _Attached(talk, receiver, pseudonym, answers, attached.salt)
        with ungrouped(Exception):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._acknowledge, one)
                while (frames := await self._heard(one, until_quiet)) is not None:
                    await self._take(one, [frame for frame in frames if isinstance(frame, Delivery)])
                nursery.cancel_scope.cancel()

    async def _take(self, one: _Attached, deliveries: list[Delivery]) -> None:
        messages: list[Message] = []
        before = one.number
        failure: PeerError | None = None
        for place, delivery in enumerate(deliveries, 1):
            if place % OPENED_AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
            try:
                messages += self._opened(one.pseudonym, delivery)
            except PeerError as error:
                failure = unraised(error)
                break
            one.chain = request_proofs.followed(one.chain, delivery.wrapped)
            one.number += 1
        if (count := one.number - before) > 0:
            one.chains[one.number] = one.chain
            one.answers.came(count)
        if messages:
            await self._hand_in(one.receiver, one.pseudonym, messages)
        one.answers.take(count)
        if failure is not None:
            raise unraised(failure)
        await one.answers.rest(count)

    async def _acknowledge(self, one: _Attached) -> None:
        """Acknowledge what is durable, until cancelled."""
        while True:
            number = await one.answers.next()
            secret, chain = one.pseudonym.credentials.secret, one.chains[number]
            one.chains = {other: kept for other, kept in one.chains.items() if other > number}
            await one.talk.say(request_proofs.acknowledge(secret, chain, number))

    async def _heard(self, one: _Attached, until_quiet: float | None) -> list[ToUser] | None:
        """Return the next frames, among them deliveries; raise `TransportError` where nobody is there.

        `None` where none came for so many seconds, if these are given.
        """
        talk = one.talk
        frames: list[ToUser] | None = None
        with trio.move_on_after(one.answers.quiet(PING_EVERY) if until_quiet is None else until_quiet):
            frames = await talk.hear()
        if frames is None:
            if until_quiet is not None:
                return None
            await talk.say(Ping())
            with trio.move_on_after(ANSWER_TIMEOUT):
                frames = await talk.hear()
        if not frames:
            raise TransportError("the proxy closed the link, or fell silent")
        for frame in frames:
            if isinstance(frame, Pong):
                talk.note(frame)
                if not frame.is_open:
                    raise TransportError("the proxy has lost the server")
            elif not isinstance(frame, Delivery):
                raise DecodeError("a proxy answered what nobody asked")
        return frames

    def _opened(self, pseudonym: Pseudonym, delivery: Delivery) -> list[Message]:
        """Return a delivery's message, if it is one of the day that the pseudonym brings.

        Under `hardened` the server sealed it for this pseudonym: what does not open was altered on the way,
        and raises, so that it is sent again. As published, its publisher may have sealed anything.
        """
        try:
            inside = unwrap(pseudonym.credentials.key, delivery.wrapped)
        except AuthenticationError:
            self._counters.add("deliveries_refused")
            if self._profile.wraps_anew:
                raise
            return []
        try:
            message = message_inside(inside)
        except PeerError:
            self._counters.add("deliveries_refused")
            return []
        if message.day != pseudonym.brings:
            self._counters.add("deliveries_refused")
            return []
        return [message]

    async def _hand_in(self, receiver: Receiver, pseudonym: Pseudonym, messages: list[Message]) -> None:
        """Give each route the messages of its topic; durable on return."""
        for route in list(receiver.routes.values()):
            trunk = (await route.tokens(messages[0].day)).trunk
            ours = [message for message in messages if message.tokens[0] == trunk]
            for message in ours:
                route.coverage.arrived(message.id)
            pseudonym.has_brought |= bool(ours)
            if ours and route.wanted.name in receiver.routes:
                await route.take(ours)
