"""The publisher: hands a message to the server through a random proxy; publications and probes alike."""

from __future__ import annotations

from collections.abc import Collection

import trio

from hushcast_central.user.credentials import CredentialsMaker
from hushcast_central.user.introducer import Introducer
from hushcast_central.user.pseudonym import Credentials
from hushcast_central.user.reachability import Reachability
from hushcast_central.user.user_links import UserLinks
from hushcast_protocol.base import ground_truth
from hushcast_protocol.base.errors import AuthenticationError, PeerError, Refusal
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.central import request_proofs
from hushcast_protocol.central.frames import AttachAnswer, UserAnswer
from hushcast_protocol.central.network import CentralNetwork, Proxy
from hushcast_protocol.central.profile import CentralProfile
from hushcast_protocol.central.rerouting import mark
from hushcast_protocol.content.messages import Message
from hushcast_runtime.carriers.carrier import Handover
from hushcast_runtime.context import Context
from hushcast_runtime.logs import log
from hushcast_runtime.transports.base import TransportError


class CentralPublisher:
    """Hands over the messages of one daemon."""

    def __init__(
        self,
        network: CentralNetwork,
        profile: CentralProfile,
        links: UserLinks,
        introducer: Introducer,
        credentials: CredentialsMaker,
        heard: Reachability,
        context: Context,
    ) -> None:
        self._network = network
        self._profile = profile
        self._links = links
        self._introducer = introducer
        self._credentials = credentials
        self._heard = heard
        self._env = context.env
        self._counters = context.counters
        self._tracer = context.tracer
        # As published, a user has one pseudonym for a day at a proxy; known there since it was introduced.
        self._known: dict[tuple[int, PublicKey], Credentials] = {}

    async def hand_over(self, message: Message, handover: Handover, taken: Collection[bytes] = ()) -> None:
        """Hand a message to the server unless it has `taken` it; `Refusal` where nobody ever answered."""
        self._heard.check()
        server = self._network.server
        if server in taken:
            return
        manner = self._links.manner
        pool = self._env.sample(self._links.of("publications"), manner.attempts)
        for attempt in range(manner.attempts):
            if attempt:
                await trio.sleep(self._env.uniform(0.0, manner.longest_delay))
            handover.note_try(server)
            try:
                await self._publish(pool[attempt % len(pool)], message)
            except (TransportError, PeerError, Refusal) as error:
                log.info("no receipt came", reason=str(error))
                handover.note_failure(f"no receipt came: {error}")
            else:
                handover.note_receipt(server)
                return

    async def _publish(self, proxy: Proxy, message: Message) -> None:
        """Hand it over through a proxy; raise a reason unless there is a receipt of the server's."""
        known = self._known.get((message.day, proxy.key))
        credentials = known or await self._credentials.draw("publish", message.day)
        if known is None:
            self._tracer.tell(ground_truth.Introduced(credentials.pseudonym, "publish", None))
        request = await self._env.compute(credentials.publish, message, self._env.randomness)
        async with self._links.open(proxy) as talk:
            answer: UserAnswer | AttachAnswer | None = (await talk.ask(request))[0] if known else None
            if answer is None or (isinstance(answer, UserAnswer) and answer.verdict == "unknown"):
                answer = await self._introducer.introduce(talk, credentials, request)
        if not isinstance(answer, UserAnswer) or (
            answer.proof is not None
            and not request_proofs.is_from_server(credentials.secret, request, answer)
        ):
            self._counters.add("answers_forged")
            raise AuthenticationError("a proxy answered in the server's name")
        if answer.verdict != "accepted":
            who = "the server" if answer.proof is not None else "a proxy"
            raise Refusal(f"{who} does not take the message: {answer.verdict}")
        if answer.proof is None:
            self._counters.add("answers_forged")
            raise AuthenticationError("a proxy gave a receipt that is not the server's")
        if self._tracer.is_on:
            self._tracer.tell(ground_truth.Handed(message.id, credentials.pseudonym, mark(request.wrapped)))
        if not self._profile.own_pseudonyms:
            self._remember(proxy.key, credentials)

    def _remember(self, proxy: PublicKey, credentials: Credentials) -> None:
        for day, key in list(self._known):
            if self._network.calendar.lapse(day) <= self._env.now():
                del self._known[day, key]
        self._known[credentials.day, proxy] = credentials
