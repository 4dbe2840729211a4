"""The registration of tokens: tells the server which tokens a pseudonym wants, as its routes come and go."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hushcast_central.user.introducer import Introducer
from hushcast_central.user.pseudonym import Pseudonym, PseudonymRecords
from hushcast_central.user.receiver import CentralRoute, Receiver
from hushcast_central.user.user_links import ProxyConversation
from hushcast_protocol.base import ground_truth
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.errors import AuthenticationError, Refusal
from hushcast_protocol.central import request_proofs
from hushcast_protocol.central.frames import (
    MAX_SUBSCRIBED,
    AttachAnswer,
    Subscribe,
    UserAnswer,
    WithdrawTokens,
)
from hushcast_runtime.context import Context

MAX_FORGOTTEN = 3  # times in one conversation that nobody knows a pseudonym that was just introduced


class TokenRegistration:
    """Keeps what the server holds for one daemon's pseudonyms as it is wanted."""

    def __init__(
        self, introducer: Introducer, records: PseudonymRecords, calendar: Calendar, context: Context
    ) -> None:
        self._introducer = introducer
        self._records = records
        self.calendar = calendar
        self._env = context.env
        self._counters = context.counters
        self._tracer = context.tracer

    async def is_settled(self, receiver: Receiver, pseudonym: Pseudonym) -> bool:
        """Tell whether the server has all that is wanted and nothing else; routes of today are ready then."""
        wanted = await self._wanted(receiver, pseudonym.day)
        if pseudonym.day == self.calendar.day(self._env.now()):
            for route, tokens in wanted:
                if tokens <= pseudonym.held:
                    route.ready.set()
        return not pseudonym.leaving and pseudonym.held == set().union(*(tokens for _, tokens in wanted))

    async def settle(self, talk: ProxyConversation, receiver: Receiver, pseudonym: Pseudonym) -> None:
        """Tell the server what it has not confirmed; raise `Refusal` where it declines.

        Raises `TransportError` and `PeerError`, too; what was confirmed before counts.
        """
        async with pseudonym.turn:
            for _ in range(MAX_FORGOTTEN):
                if await self._try(talk, receiver, pseudonym):
                    return
        raise Refusal("a pseudonym was forgotten as soon as it was introduced")

    async def _try(self, talk: ProxyConversation, receiver: Receiver, pseudonym: Pseudonym) -> bool:
        """Tell it all; return whether that is settled, else the pseudonym was forgotten on the way."""
        wanted = await self._wanted(receiver, pseudonym.day)
        for route, tokens in wanted:
            for some in _parts(tokens - pseudonym.held):
                if not await self._subscribe(talk, route, pseudonym, some):
                    return False
        there = pseudonym.held | pseudonym.leaving
        for some in _parts(there.difference(*(tokens for _, tokens in wanted))):
            if not await self._withdraw(talk, pseudonym, some):
                return False
        await self.is_settled(receiver, pseudonym)
        return True

    async def _wanted(self, receiver: Receiver, day: int) -> list[tuple[CentralRoute, set[bytes]]]:
        routes = list(receiver.routes.values())
        return [(route, set((await route.tokens(day)).entries)) for route in routes]

    async def _subscribe(
        self, talk: ProxyConversation, route: CentralRoute, pseudonym: Pseudonym, tokens: tuple[bytes, ...]
    ) -> bool:
        await self._count(pseudonym)
        request = await self._env.compute(pseudonym.credentials.subscribe, pseudonym.serial, tokens)
        if pseudonym.held:
            answer = (await talk.ask(request))[0]
        else:
            answer = await self._introducer.introduce(talk, pseudonym.credentials, request)
        if not self._is_done(pseudonym, request, answer):
            return False
        pseudonym.held.update(tokens)
        pseudonym.leaving.difference_update(tokens)
        self._records.keep_soon(pseudonym)
        self._tracer.tell(ground_truth.Registered(route.topic, pseudonym.id, request.serial))
        if route.told is None:
            route.told = pseudonym.id
            self._tracer.tell(ground_truth.Subscribed(route.topic, pseudonym.id))
        return True

    async def _withdraw(
        self, talk: ProxyConversation, pseudonym: Pseudonym, tokens: tuple[bytes, ...]
    ) -> bool:
        pseudonym.held.difference_update(tokens)  # whoever wants them again asks for them
        pseudonym.leaving.update(tokens)
        await self._count(pseudonym)
        request = await self._env.compute(pseudonym.credentials.withdraw, pseudonym.serial, tokens)
        if not self._is_done(pseudonym, request, (await talk.ask(request))[0]):
            return False
        pseudonym.leaving.difference_update(tokens)
        self._records.keep_soon(pseudonym)
        return True

    async def ask_past(self, talk: ProxyConversation, pseudonym: Pseudonym, token: bytes) -> None:
        """Introduce a pseudonym, and have the server bring what is kept under a token; raises as `settle`."""
        await self._count(pseudonym)
        request = await self._env.compute(pseudonym.credentials.subscribe, pseudonym.serial, (token,))
        answer = await self._introducer.introduce(talk, pseudonym.credentials, request)
        if not self._is_done(pseudonym, request, answer):
            raise Refusal("a pseudonym was forgotten as soon as it was introduced")

    async def has_all(self, talk: ProxyConversation, pseudonym: Pseudonym, token: bytes) -> bool:
        """Tell whether the server says that all that it keeps under a token was acknowledged.

        Raises `TransportError` and `PeerError`: also where somebody else says so.
        """
        await self._count(pseudonym)
        request = await self._env.compute(pseudonym.credentials.withdraw, pseudonym.serial, (token,))
        try:
            return self._is_done(pseudonym, request, (await talk.ask(request))[0])
        except Refusal:
            return False

    async def withdraw_all(self, talk: ProxyConversation, pseudonym: Pseudonym) -> None:
        """Have a pseudonym forgotten, durably for the server; raises as `settle`."""
        async with pseudonym.turn:
            await self._count(pseudonym)
            request = pseudonym.credentials.withdraw(pseudonym.serial)
            if not self._is_done(pseudonym, request, (await talk.ask(request))[0]):
                # The proxy has forgotten it, and the server perhaps not.
                answer = await self._introducer.introduce(talk, pseudonym.credentials, request)
                if not self._is_done(pseudonym, request, answer):
                    raise Refusal("a pseudonym was forgotten as soon as it was introduced")

    async def _count(self, pseudonym: Pseudonym) -> None:
        """Take the next serial, durably: one that came before is answered as it was then."""
        pseudonym.serial += 1
        pseudonym.is_known = True
        await self._records.keep(pseudonym)

    def _is_done(
        self, pseudonym: Pseudonym, request: Subscribe | WithdrawTokens, answer: UserAnswer | AttachAnswer
    ) -> bool:
        """Tell whether the server did it, or nobody knows the pseudonym any more; raise what else it is."""
        if isinstance(answer, UserAnswer) and answer.verdict == "unknown":
            pseudonym.held.clear()
            return False
        if isinstance(answer, UserAnswer) and answer.verdict != "accepted":
            raise Refusal(f"a subscription was not taken: {answer.verdict}")
        secret = pseudonym.credentials.secret
        if not isinstance(answer, UserAnswer) or not request_proofs.is_from_server(secret, request, answer):
            self._counters.add("answers_forged")
            raise AuthenticationError("a proxy answered in the server's name")
        return True


def _parts(tokens: Iterable[bytes]) -> Iterator[tuple[bytes, ...]]:
    """Yield the tokens, as many at a time as a request has."""
    left = sorted(tokens)
    while left:
        yield tuple(left[:MAX_SUBSCRIBED])
        left = left[MAX_SUBSCRIBED:]
