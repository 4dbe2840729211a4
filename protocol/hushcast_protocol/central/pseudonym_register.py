"""The register: which pseudonyms subscribe, to which tokens, through which proxy, until when.

A pseudonym belongs to the proxy that introduced it, and is stored once it has asked for tokens. Requests have
serial numbers: one that was accepted is answered again as it was, an earlier one is refused. Who withdrew
stays known for as long as there is room, so that nobody brings its requests back.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from hushcast_protocol.base.crypto.group import Point, check_point
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.errors import AuthenticationError, Refusal
from hushcast_protocol.base.wire import Bytes16, Bytes32, Counter, PublicKey
from hushcast_protocol.central.frames import Attach, Subscribe, UserAnswer, WithdrawTokens
from hushcast_protocol.central.introduction import OpenedIntroduction, PseudonymSecret
from hushcast_protocol.central.request_proofs import check_request, done
from hushcast_protocol.content.hops import Hop
from hushcast_protocol.content.routing_table import RoutingTable

MAX_PSEUDONYMS = 16_384  # of all proxies; one is a subscription for a day
MAX_TOKENS_EACH = 256  # of one pseudonym; as published, one is all that a user subscribes to
MAX_TOKENS_OF_ALL = 524_288  # 80 MB; 32 for each pseudonym, which is what the widest condition has

TOKENS_ASSURED = (
    32  # that a pseudonym may have also where half of its proxy's are taken: the widest condition
)
_STEP = 512  # tokens, and pseudonyms, forgotten at once, some 8 ms: others go on in between
_KIND = b"p"


def hop_of(pseudonym: bytes) -> Hop:
    """Return what messages for a pseudonym wait under."""
    return Hop(_KIND + pseudonym)


def waits_for(hop: Hop) -> bytes:
    """Return the pseudonym that messages wait for."""
    return hop[1:]


class PseudonymRecord(msgspec.Struct, frozen=True, array_like=True):
    """What is stored of a pseudonym."""

    proxy: PublicKey
    day: Counter
    secret: Bytes32
    serial: Counter
    proof: Bytes16
    """Of the request with this serial."""
    is_over: bool
    tokens: tuple[Point, ...]


class _Subscriber:
    """A pseudonym, and its tokens, each with the filter that it is in."""

    __slots__ = ("day", "is_over", "proof", "proxy", "secret", "serial", "tokens")

    def __init__(self, proxy: PublicKey, day: int, secret: PseudonymSecret) -> None:
        self.proxy = proxy
        self.day = day
        self.secret = secret
        self.serial = -1  # of the last request that was accepted
        self.proof = b""
        self.is_over = False
        self.tokens: dict[bytes, int] = {}


class _Share:
    """What one proxy has brought."""

    __slots__ = ("idle", "pseudonyms", "tokens")

    def __init__(self) -> None:
        self.pseudonyms = 0
        self.tokens = 0
        self.idle: OrderedDict[bytes, None] = OrderedDict()  # those without tokens, who give way


class PseudonymRegister:
    """The pseudonyms that subscribe at one server. `now` is Unix time.

    Methods raise `Refusal` with a verdict (`CentralVerdict`). What they change is told by `changes`, and is
    to be on disk before anybody hears of it.
    """

    def __init__(self, calendar: Calendar, key: bytes) -> None:
        """`key` (16 to 64 bytes) is for the filters, and may be drawn anew at each start."""
        self._calendar = calendar
        self._table = RoutingTable(key)
        self._subscribers: dict[bytes, _Subscriber] = {}
        self._shares: dict[PublicKey, _Share] = {}
        self._changed: dict[bytes, None] = {}
        self.tokens = 0
        """How many are routed."""
        self.proxies = 1
        """How many bring pseudonyms: each has an equal share of the room for these and for their tokens."""

    def __len__(self) -> int:
        return len(self._subscribers)

    def __contains__(self, pseudonym: bytes) -> bool:
        """Tell whether messages may wait for a pseudonym."""
        subscriber = self._subscribers.get(pseudonym)
        return subscriber is not None and not subscriber.is_over

    def fullness(self, proxy: PublicKey) -> float:
        """Return the share (0 to 1) of a proxy's room that is taken, for pseudonyms or for tokens."""
        if (share := self._shares.get(proxy)) is None:
            return 0.0
        taken = max(share.pseudonyms / MAX_PSEUDONYMS, share.tokens / MAX_TOKENS_OF_ALL)
        return min(1.0, taken * self.proxies)

    def load(self, pseudonym: bytes, kept: PseudonymRecord) -> None:
        """Take what was stored."""
        subscriber = _Subscriber(kept.proxy, kept.day, PseudonymSecret(kept.secret))
        subscriber.serial, subscriber.proof, subscriber.is_over = kept.serial, kept.proof, kept.is_over
        self._add(pseudonym, subscriber)
        self._route(pseudonym, subscriber, kept.tokens)

    def changes(self) -> list[tuple[bytes, PseudonymRecord | None]]:
        """Return what is to be stored since this was last asked: pseudonyms, and none for the forgotten."""
        changed, self._changed = self._changed, {}
        return [(pseudonym, self._kept(pseudonym)) for pseudonym in changed]

    def introduce(self, proxy: PublicKey, introduced: OpenedIntroduction, now: float) -> None:
        """Know a pseudonym; for a known one this changes nothing."""
        if introduced.day not in self._calendar.installable_days(now):
            raise Refusal("day")
        if (known := self._subscribers.get(introduced.pseudonym)) is not None:
            if known.proxy != proxy:
                raise Refusal("taken")
            if known.is_over or known.day != introduced.day:
                raise Refusal("form")
            return
        share = self._share(proxy)
        is_full = len(self._subscribers) >= MAX_PSEUDONYMS
        if is_full or share.pseudonyms >= MAX_PSEUDONYMS // self.proxies:
            if not share.idle:
                raise Refusal("quota")
            self._forget(next(iter(share.idle)))
        self._add(introduced.pseudonym, _Subscriber(proxy, introduced.day, introduced.secret))

    def subscribe(self, proxy: PublicKey, request: Subscribe, now: float) -> UserAnswer:
        """Route tokens to a pseudonym, too; all of them or, without room, none."""
        subscriber = self._asking(proxy, request)
        if self._is_again(subscriber, request):
            return done(subscriber.secret, request, "accepted")
        if subscriber.is_over:
            raise Refusal("unknown")
        if self._calendar.lapse(subscriber.day) <= now:
            raise Refusal("day")
        new = [token for token in dict.fromkeys(request.tokens) if token not in subscriber.tokens]
        _check_points(new)
        if new and not self._has_room(subscriber, len(new)):
            raise Refusal("quota")
        self._route(request.pseudonym, subscriber, new)
        return self._accept(subscriber, request)

    def withdraw(self, proxy: PublicKey, request: WithdrawTokens) -> UserAnswer:
        """Route tokens no more; without any named, the pseudonym is over, and nothing waits for it."""
        subscriber = self._asking(proxy, request)
        if not self._is_again(subscriber, request) and not subscriber.is_over:
            gone = request.tokens or tuple(subscriber.tokens)
            self._unroute(request.pseudonym, subscriber, gone)
            subscriber.is_over = not request.tokens
            return self._accept(subscriber, request)
        return done(subscriber.secret, request, "accepted")

    def attach(self, proxy: PublicKey, request: Attach, now: float) -> PseudonymSecret:
        """Return the secret of a pseudonym that asks for what waits for it."""
        subscriber = self._asking(proxy, request)
        if subscriber.is_over:
            raise Refusal("unknown")
        if self._calendar.lapse(subscriber.day) <= now:
            raise Refusal("day")
        return subscriber.secret

    def match(self, tokens: Iterable[Point]) -> list[Hop]:
        """Return what may wait for messages with any of the tokens, each once; `wanting` tells which does."""
        return self._table.lookup_any(tokens)

    def wanting(self, matched: Iterable[Hop], tokens: Iterable[Point]) -> list[Hop]:
        """Return those of what `match` found whose pseudonyms have asked for any of the tokens."""
        known = self._subscribers
        return [
            hop
            for hop in matched
            # A filter may say so by chance, and the pseudonym have gone meanwhile.
            if (one := known.get(waits_for(hop))) is not None and not one.tokens.keys().isdisjoint(tokens)
        ]

    def expire(self, now: float) -> Iterator[list[bytes]]:
        """Forget the pseudonyms whose day has lapsed; yield them, as many at a time as a step may take."""
        lapse = self._calendar.lapse
        over = {day for day in {one.day for one in self._subscribers.values()} if lapse(day) <= now}
        expired = [name for name, one in self._subscribers.items() if one.day in over] if over else []
        step: list[bytes] = []
        cost = 0
        for pseudonym in expired:
            if (subscriber := self._subscribers.get(pseudonym)) is None:
                continue  # it gave way to another since the last step
            cost += 1 + len(subscriber.tokens)
            self._forget(pseudonym)
            step.append(pseudonym)
            if cost >= _STEP:
                yield step
                step, cost = [], 0
        if step:
            yield step

    def _share(self, proxy: PublicKey) -> _Share:
        return self._shares.setdefault(proxy, _Share())

    def _add(self, pseudonym: bytes, subscriber: _Subscriber) -> None:
        self._subscribers[pseudonym] = subscriber
        share = self._share(subscriber.proxy)
        share.pseudonyms += 1
        share.idle[pseudonym] = None

    def _has_room(self, subscriber: _Subscriber, new: int) -> bool:
        """Tell whether a pseudonym may have new tokens, too.

        Those with many share half of their proxy's room: the other half is for all others, who are so many
        that a proxy wants stamps before it is full.
        """
        each, of_proxy = len(subscriber.tokens) + new, self._share(subscriber.proxy).tokens + new
        room = MAX_TOKENS_OF_ALL // self.proxies
        if each > TOKENS_ASSURED and of_proxy > room // 2:
            return False
        return each <= MAX_TOKENS_EACH and of_proxy <= room and self.tokens + new <= MAX_TOKENS_OF_ALL

    def _asking(self, proxy: PublicKey, request: Subscribe | WithdrawTokens | Attach) -> _Subscriber:
        subscriber = self._subscribers.get(request.pseudonym)
        if subscriber is None:
            raise Refusal("unknown")
        if subscriber.proxy != proxy:
            raise Refusal("taken")
        try:
            check_request(subscriber.secret, request)
        except AuthenticationError:
            raise Refusal("proof") from None
        return subscriber

    def _is_again(self, subscriber: _Subscriber, request: Subscribe | WithdrawTokens) -> bool:
        """Tell whether a request is the one that was accepted last; refuse what is older."""
        if request.serial > subscriber.serial:
            return False
        if request.proof != subscriber.proof:
            raise Refusal("form")
        return True

    def _accept(self, subscriber: _Subscriber, request: Subscribe | WithdrawTokens) -> UserAnswer:
        subscriber.serial, subscriber.proof = request.serial, request.proof
        self._changed[request.pseudonym] = None
        return done(subscriber.secret, request, "accepted")

    def _route(self, pseudonym: bytes, subscriber: _Subscriber, tokens: Sequence[Point]) -> None:
        if tokens:
            place = self._table.add(hop_of(pseudonym), tokens)
            subscriber.tokens.update(dict.fromkeys(tokens, place))
            self.tokens += len(tokens)
            share = self._share(subscriber.proxy)
            share.tokens += len(tokens)
            share.idle.pop(pseudonym, None)

    def _unroute(self, pseudonym: bytes, subscriber: _Subscriber, tokens: Iterable[Point]) -> None:
        share = self._share(subscriber.proxy)
        for token in tokens:
            if (place := subscriber.tokens.pop(token, None)) is not None:
                self._table.remove(place, (token,))
                self.tokens -= 1
                share.tokens -= 1
        if not subscriber.tokens:
            share.idle[pseudonym] = None

    def _forget(self, pseudonym: bytes) -> None:
        subscriber = self._subscribers[pseudonym]
        self._unroute(pseudonym, subscriber, tuple(subscriber.tokens))
        share = self._share(subscriber.proxy)
        del self._subscribers[pseudonym], share.idle[pseudonym]
        share.pseudonyms -= 1
        if not share.pseudonyms:
            del self._shares[subscriber.proxy]
        self._changed[pseudonym] = None

    def _kept(self, pseudonym: bytes) -> PseudonymRecord | None:
        subscriber = self._subscribers.get(pseudonym)
        if subscriber is None or not subscriber.proof:
            return None
        return PseudonymRecord(
            subscriber.proxy,
            subscriber.day,
            subscriber.secret.reveal(),
            subscriber.serial,
            subscriber.proof,
            subscriber.is_over,
            tuple(subscriber.tokens),
        )


def _check_points(tokens: Iterable[Point]) -> None:
    try:
        for token in tokens:
            check_point(token)
    except AuthenticationError:
        raise Refusal("form") from None
