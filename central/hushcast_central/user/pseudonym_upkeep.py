"""The upkeep of one pseudonym: registers it, attaches, and does so again whenever its link ends."""

from __future__ import annotations

import math

import trio

from hushcast_central.user.attachments import UserAttachments
from hushcast_central.user.past_questions import PastQuestions
from hushcast_central.user.pseudonym import Pseudonym
from hushcast_central.user.receiver import Receiver
from hushcast_central.user.token_registration import TokenRegistration
from hushcast_central.user.user_links import ProxyConversation, UserLinks
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.errors import HushcastError, PeerError, Refusal
from hushcast_protocol.central.frames import AttachAnswer
from hushcast_runtime.context import Context
from hushcast_runtime.logs import log
from hushcast_runtime.transports.base import TransportError

ATTACH_WITHIN = 30.0  # seconds after a restart, or a proxy's, in which pseudonyms attach, each at its moment


class PseudonymUpkeep:
    """Tends the pseudonyms of one daemon."""

    def __init__(
        self,
        links: UserLinks,
        registering: TokenRegistration,
        attachments: UserAttachments,
        past: PastQuestions,
        calendar: Calendar,
        context: Context,
    ) -> None:
        self._links = links
        self._registering = registering
        self._attachments = attachments
        self.past = past
        self._calendar = calendar
        self._env = context.env
        self._counters = context.counters

    def own_moment(self) -> float:
        """Draw the seconds until a pseudonym attaches, where others of this daemon have to, too."""
        return self._env.uniform(0.0, min(ATTACH_WITHIN, self._calendar.grace / 2))

    async def run(self, receiver: Receiver, pseudonym: Pseudonym, pause: float) -> bool:
        """Receive by a pseudonym, from `pause` seconds on, until it is forgotten or ending.

        Returns true where a new one came to nothing and another proxy may do better. One that was registered
        stays where it is, whoever says that he forgot it: messages may wait for it at the server.
        """
        is_new = not pseudonym.held
        with pseudonym.scope:
            while True:
                await trio.sleep(pause)
                if pseudonym.is_ending:
                    return False
                if self._calendar.lapse(pseudonym.day) <= self._env.now():
                    pause = self.own_moment()  # it is forgotten soon, or the clock is wrong
                    continue
                pause = await self._receive(receiver, pseudonym)
                is_new = is_new and not pseudonym.held
                if is_new and len(self._links.of("deliveries")) > 1:
                    await trio.sleep(pause)
                    return True
        return False

    async def update(self, receiver: Receiver, pseudonym: Pseudonym) -> bool:
        """Tell the server what changed, over a link of its own; return whether it confirmed that."""
        try:
            async with self._links.open(self._links.proxy(pseudonym.proxy)) as talk:
                await self._registering.settle(talk, receiver, pseudonym)
        except (TransportError, PeerError, Refusal) as error:
            log.info("a subscription was not changed yet", reason=str(error))
            return False
        return True

    async def _receive(self, receiver: Receiver, pseudonym: Pseudonym) -> float:
        """Receive over one link until it ends; return the seconds until the next."""
        try:
            async with self._links.open(self._links.proxy(pseudonym.proxy)) as talk:
                await self._register(talk, receiver, pseudonym, again=False)
                receiver.look()
                attached = await self._attach(talk, receiver, pseudonym)
                pseudonym.left_at = math.inf
                try:
                    await self._attachments.serve(talk, attached, receiver, pseudonym)
                except TransportError as error:
                    log.info("an attachment ended", reason=str(error))
                finally:
                    pseudonym.left_at = self._env.now()
        except (TransportError, PeerError, Refusal) as error:
            log.info("nothing is received by a pseudonym at the moment", reason=str(error))
            return receiver.backoff.next()
        except HushcastError as error:  # the disk, perhaps: the messages come again
            log.warning("messages were not taken", reason=str(error))
            self._counters.add("internal_errors")
            return receiver.backoff.next()
        except Exception:
            log.exception("messages met an error of this program")
            self._counters.add("internal_errors")
            return receiver.backoff.next()
        receiver.backoff.reset()
        return self.own_moment()  # others' links may have ended with this one

    async def _register(
        self, talk: ProxyConversation, receiver: Receiver, pseudonym: Pseudonym, again: bool
    ) -> None:
        is_new = not pseudonym.held
        await self._registering.settle(talk, receiver, pseudonym)
        if is_new and pseudonym.held:
            self.past.note_registered(receiver, pseudonym, again)

    async def _attach(
        self, talk: ProxyConversation, receiver: Receiver, pseudonym: Pseudonym
    ) -> AttachAnswer:
        for _ in range(2):
            answer = (await talk.ask(pseudonym.credentials.attach()))[0]
            if isinstance(answer, AttachAnswer):
                return answer
            if answer.verdict != "unknown":
                raise Refusal(f"an attachment was refused: {answer.verdict}")
            pseudonym.held.clear()  # a proxy or the server has lost its disk
            await self._register(talk, receiver, pseudonym, again=True)
        raise Refusal("a pseudonym was forgotten as soon as it was registered")
