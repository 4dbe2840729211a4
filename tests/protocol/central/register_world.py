"""A register moved by requests from a script, what was stored of it, and a simple model that must agree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from unittest import mock

from hushcast_protocol.base.crypto.group import Scalar, base
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.central import pseudonym_register, request_proofs
from hushcast_protocol.central.frames import Subscribe, WithdrawTokens
from hushcast_protocol.central.introduction import OpenedIntroduction, PseudonymSecret, pseudonym_of
from hushcast_protocol.central.pseudonym_register import PseudonymRegister, waits_for

CALENDAR = Calendar(60)
TODAY = 1000
NOW = CALENDAR.day_start(TODAY) + CALENDAR.day_seconds / 2
_SOURCE = Random(7)
PROXIES = [_SOURCE.randbytes(32) for _ in range(2)]
SECRETS = [PseudonymSecret(_SOURCE.randbytes(32)) for _ in range(4)]
NAMES = [pseudonym_of(secret) for secret in SECRETS]
TOKENS = [base(Scalar.draw(_SOURCE.randbytes)) for _ in range(6)]
OUTSIDE = bytes(32)
MOST_TOKENS, MOST_OF_ALL, ASSURED = 4, 7, 2


def new() -> PseudonymRegister:
    return PseudonymRegister(CALENDAR, bytes(16))


def introduced(number: int, day: int = TODAY, use: str = "subscribe") -> OpenedIntroduction:
    return OpenedIntroduction(NAMES[number], use, day, Scalar.draw(_SOURCE.randbytes), SECRETS[number])  # type: ignore[arg-type]


def subscribe(number: int, serial: int, *tokens: bytes) -> Subscribe:
    return request_proofs.subscribe(NAMES[number], SECRETS[number], serial, tokens)


def withdraw(number: int, serial: int, *tokens: bytes) -> WithdrawTokens:
    return request_proofs.withdraw(NAMES[number], SECRETS[number], serial, tokens)


@dataclass
class Known:
    """What the model knows of a pseudonym."""

    proxy: bytes
    day: int
    tokens: set[bytes] = field(default_factory=set)
    serial: int = -1
    request: Subscribe | WithdrawTokens | None = None
    is_over: bool = False


class World:
    """A register, what was stored of it, and the model."""

    def __init__(self) -> None:
        self.register = new()
        self.stored: dict[bytes, pseudonym_register.PseudonymRecord] = {}
        self.model: dict[int, Known] = {}
        self.now = NOW

    def store(self) -> None:
        for pseudonym, kept in self.register.changes():
            if kept is None:
                self.stored.pop(pseudonym, None)
            else:
                self.stored[pseudonym] = kept

    def restart(self) -> None:
        self.register = new()
        for pseudonym, kept in self.stored.items():
            self.register.load(pseudonym, kept)
        self.model = {number: known for number, known in self.model.items() if known.request is not None}

    def introduce(self, proxy: bytes, number: int, day: int) -> None:
        known = self.model.get(number)
        expected = None
        if not CALENDAR.day(self.now) <= day <= CALENDAR.day(self.now) + 1:
            expected = "day"
        elif known is not None and known.proxy != proxy:
            expected = "taken"
        elif known is not None and (known.is_over or known.day != day):
            expected = "form"
        try:
            self.register.introduce(proxy, introduced(number, day), self.now)
            found = None
        except Refusal as refusal:
            found = refusal.reason
        assert found == expected
        if found is None:
            self.model.setdefault(number, Known(proxy, day))

    def ask(self, proxy: bytes, request: Subscribe | WithdrawTokens) -> None:
        number = NAMES.index(request.pseudonym)
        expected = self.expected(proxy, number, request)
        try:
            if isinstance(request, Subscribe):
                answer = self.register.subscribe(proxy, request, self.now)
            else:
                answer = self.register.withdraw(proxy, request)
            found = answer.verdict
        except Refusal as refusal:
            found = refusal.reason
        assert found == expected
        if found != "accepted":
            return
        assert request_proofs.is_from_server(SECRETS[number], request, answer)
        known = self.model[number]
        if request.serial > known.serial and not known.is_over:
            known.serial, known.request = request.serial, request
            if isinstance(request, Subscribe):
                known.tokens |= set(request.tokens)
            else:
                known.tokens -= set(request.tokens or known.tokens)
                known.is_over = not request.tokens

    def expected(self, proxy: bytes, number: int, request: Subscribe | WithdrawTokens) -> str:
        known = self.model.get(number)
        if known is None:
            return "unknown"
        if known.proxy != proxy:
            return "taken"
        if request.serial <= known.serial:
            again = known.request is not None and request.proof == known.request.proof
            return "accepted" if again else "form"
        if isinstance(request, WithdrawTokens):
            return "accepted"
        if known.is_over:
            return "unknown"
        if CALENDAR.lapse(known.day) <= self.now:
            return "day"
        new_ones = set(request.tokens) - known.tokens
        if OUTSIDE in new_ones:
            return "form"
        total = sum(len(other.tokens) for other in self.model.values())
        if len(known.tokens | new_ones) > MOST_TOKENS or total + len(new_ones) > MOST_OF_ALL:
            return "quota"
        of_proxy = sum(len(other.tokens) for other in self.model.values() if other.proxy == proxy)
        if (
            new_ones
            and len(known.tokens | new_ones) > ASSURED
            and of_proxy + len(new_ones) > MOST_OF_ALL // 2
        ):
            return "quota"
        return "accepted"

    def expire(self) -> None:
        gone = {number for number, known in self.model.items() if CALENDAR.lapse(known.day) <= self.now}
        expired = {name for step in self.register.expire(self.now) for name in step}
        assert expired == {NAMES[number] for number in gone}
        for number in gone:
            del self.model[number]

    def matched(self, *tokens: bytes) -> list[bytes]:
        return [waits_for(hop) for hop in self.register.wanting(self.register.match(tokens), tokens)]

    def check(self) -> None:
        self.store()
        for token in TOKENS:
            wanted = {NAMES[number] for number, known in self.model.items() if token in known.tokens}
            assert set(self.matched(token)) == wanted
        assert len(self.matched(*TOKENS)) == sum(bool(known.tokens) for known in self.model.values())
        assert self.register.tokens == sum(len(known.tokens) for known in self.model.values())
        assert len(self.register) == len(self.model)
        stored = {NAMES[number] for number, known in self.model.items() if known.request is not None}
        assert set(self.stored) == stored
        for number in range(len(NAMES)):
            known = self.model.get(number)
            assert (NAMES[number] in self.register) == (known is not None and not known.is_over)

    def pass_time(self, days: float) -> None:
        self.now += days * CALENDAR.day_seconds
        self.expire()


def play(pick: Callable[[int], int], more: Callable[[], bool]) -> None:
    """Let requests come for as long as the script has `more`; `pick(n)` chooses from 0 to n - 1."""
    world = World()
    with (
        mock.patch.object(pseudonym_register, "MAX_TOKENS_EACH", MOST_TOKENS),
        mock.patch.object(pseudonym_register, "MAX_TOKENS_OF_ALL", MOST_OF_ALL),
        mock.patch.object(pseudonym_register, "TOKENS_ASSURED", ASSURED),
    ):
        for number in range(2):
            world.introduce(PROXIES[0], number, TODAY)
        while more():
            kind, proxy, number = pick(10), PROXIES[pick(5) == 0], pick(len(NAMES))
            if kind < 2:
                world.introduce(proxy, number, TODAY - 1 + pick(4))
            elif kind < 8:
                wanted = tuple([*TOKENS, *TOKENS, OUTSIDE][pick(13)] for _ in range(pick(4) + (kind < 6)))
                world.ask(proxy, (subscribe if kind < 6 else withdraw)(number, pick(8), *wanted))
            elif kind == 8:
                world.restart()
            else:
                world.pass_time((0.0, 0.0, 0.6, 1.0)[pick(4)])
            world.check()
