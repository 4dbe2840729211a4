"""Attachments: receives what waits for a pseudonym, hands it in, and confirms what is durable."""

from __future__ import annotations

import trio

from hushcast_central.user.pseudonym import Pseudonym
from hushcast_central.user.receiver import Receiver
from hushcast_central.user.user_links import ANSWER_TIMEOUT, ProxyConversation
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, PeerError
from hushcast_protocol.central import request_proofs
from hushcast_protocol.central.frames import AttachAnswer, Delivery, Ping, Pong, ToUser
from hushcast_protocol.central.inner_message import message_inside
from hushcast_protocol.central.profile import CentralProfile
from hushcast_protocol.central.rerouting import unwrap
from hushcast_protocol.content.messages import Message
from hushcast_runtime.counters import Counters
from hushcast_runtime.transports.base import TransportError

OPENED_AT_ONCE = 32  # deliveries of one read that are opened in one step, some 8 ms
PING_EVERY = 60.0  # seconds without a word after which a sign of life is asked for


class UserAttachments:
    """The attachments of one daemon's pseudonyms."""

    def __init__(self, profile: CentralProfile, counters: Counters) -> None:
        self._profile = profile
        self._counters = counters

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
        credentials, chain, number = pseudonym.credentials, attached.salt, 0
        while True:
            if (frames := await self._heard(talk, until_quiet)) is None:
                return
            deliveries = [frame for frame in frames if isinstance(frame, Delivery)]
            messages: list[Message] = []
            before = number
            failure: PeerError | None = None
            for place, delivery in enumerate(deliveries, 1):
                if place % OPENED_AT_ONCE == 0:
                    await trio.lowlevel.checkpoint()
                try:
                    messages += self._opened(pseudonym, delivery)
                except PeerError as error:
                    failure = error
                    break
                chain = request_proofs.followed(chain, delivery.wrapped)
                number += 1
            if messages:
                await self._hand_in(receiver, pseudonym, messages)
            if number > before:
                await talk.say(request_proofs.acknowledge(credentials.secret, chain, number))
            if failure is not None:
                raise failure

    async def _heard(self, talk: ProxyConversation, until_quiet: float | None) -> list[ToUser] | None:
        """Return the next frames, among them deliveries; raise `TransportError` where nobody is there.

        `None` where none came for so many seconds, if these are given.
        """
        frames: list[ToUser] | None = None
        with trio.move_on_after(PING_EVERY if until_quiet is None else until_quiet):
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
