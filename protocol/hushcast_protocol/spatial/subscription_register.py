"""The register: which subscriptions a provider answers, and which requests change that.

Of two requests with one name the one with the higher number holds, in whatever order they come. Nobody is
evicted for a newcomer. A subscription has no moment finer than the day on which it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum

from msgspec.structs import replace

from hushcast_protocol.base.wire import Bytes32, Counter, Wire, decoder
from hushcast_protocol.spatial.located_requests import MAX_DAYS, SIZES, SubscribeRequest, WithdrawRequest
from hushcast_protocol.spatial.located_subscription import LocatedSubscription
from hushcast_protocol.spatial.offer import Link

MAX_SUBSCRIPTIONS = 1_000_000  # that any configuration allows; some 2 KB each, in memory and on disk


class RequestVerdict(StrEnum):
    """What became of a request."""

    TAKEN = "taken"
    AGAIN = "again"
    """It was taken before, and changes nothing."""
    OLD = "old"
    """A request with this name and a higher number came before."""
    DAY = "day"
    """It ends before it begins, or asks for more than `MAX_DAYS`."""
    FULL = "full"


class RegisteredSubscription(Wire, frozen=True, tag="located-kept/1"):
    """A subscription that is answered; `had` is the number of the last batch of which it needs no answer."""

    number: Counter
    until: Counter
    answers: Link
    subscription: LocatedSubscription
    had: Counter


class WithdrawnSubscription(Wire, frozen=True, tag="located-gone/1"):
    """One that was withdrawn: what came before must not bring it back."""

    number: Counter
    until: Counter


Record = RegisteredSubscription | WithdrawnSubscription

decode_record: Callable[[bytes], Record] = decoder(Record, "subscription", max(SIZES))


class SubscriptionRegister:
    """All subscriptions of a provider by their names, and the names of withdrawn ones."""

    def __init__(self, most: int) -> None:
        """At most so many subscriptions, and of withdrawn names as many."""
        self._most = most
        self._kept: dict[bytes, RegisteredSubscription] = {}
        self._gone: dict[bytes, WithdrawnSubscription] = {}
        self._ends: dict[int, dict[bytes, None]] = {}  # the names of `_gone`, by the day until which each is

    def __len__(self) -> int:
        """Return how many are answered."""
        return len(self._kept)

    def restore(self, name: bytes, record: Record) -> None:
        """Take a record as it was kept."""
        if isinstance(record, RegisteredSubscription):
            self._kept[name] = record
        else:
            self._forget_gone(name)
            self._keep_gone(name, record)

    def get(self, name: Bytes32) -> Record | None:
        """Return what is kept under a name."""
        return self._kept.get(name) or self._gone.get(name)

    def take(self, request: SubscribeRequest | WithdrawRequest, today: int, newest: int) -> RequestVerdict:
        """Let a request change the register; `newest` is the number of the batch whose answers are made.

        A new subscription is answered from the next batch on, one that is renewed as before.
        """
        before = self.get(request.name)
        if before is not None and request.number <= before.number:
            return RequestVerdict.AGAIN if self._is_as(request, before) else RequestVerdict.OLD
        if not today <= request.until <= today + MAX_DAYS:
            return RequestVerdict.DAY
        if isinstance(request, WithdrawRequest):
            return self._withdraw(request, before)
        if not isinstance(before, RegisteredSubscription) and len(self._kept) >= self._most:
            return RequestVerdict.FULL
        had = before.had if isinstance(before, RegisteredSubscription) else newest
        self._forget_gone(request.name)
        self._kept[request.name] = RegisteredSubscription(
            request.number, request.until, request.answers, request.subscription, had
        )
        return RequestVerdict.TAKEN

    def names(self) -> list[bytes]:
        """Return all names, of withdrawn ones, too, in no order: so many that they are looked at in parts."""
        return [*self._kept, *self._gone]

    def unanswered(self, names: Iterable[bytes], number: int) -> list[bytes]:
        """Return those of some names whose subscriptions are to have an answer of this batch."""
        return [name for name in names if (one := self._kept.get(name)) is not None and one.had < number]

    def answered(self, name: Bytes32, number: int) -> None:
        """Note that a subscription had its answer of a batch, if it is still there."""
        if (one := self._kept.get(name)) is not None:
            self._kept[name] = replace(one, had=number)

    def expire(self, names: Iterable[bytes], today: int) -> list[bytes]:
        """Forget those of some names that ended before this day; return them."""
        over = [name for name in names if (one := self.get(name)) is not None and one.until < today]
        for name in over:
            self._kept.pop(name, None)
            self._forget_gone(name)
        return over

    def spare(self) -> bytes | None:
        """Forget the withdrawn name that ends first, if there are too many; return it."""
        if len(self._gone) <= self._most:
            return None
        name = next(iter(self._ends[min(self._ends)]))
        self._forget_gone(name)
        return name

    def _keep_gone(self, name: bytes, gone: WithdrawnSubscription) -> None:
        self._gone[name] = gone
        self._ends.setdefault(gone.until, {})[name] = None

    def _forget_gone(self, name: bytes) -> None:
        if (gone := self._gone.pop(name, None)) is not None:
            of_day = self._ends[gone.until]
            del of_day[name]
            if not of_day:
                del self._ends[gone.until]

    def _withdraw(self, request: WithdrawRequest, before: Record | None) -> RequestVerdict:
        if before is None and len(self._gone) >= self._most:
            return RequestVerdict.FULL
        self._kept.pop(request.name, None)
        until = max(request.until, before.until if before is not None else 0)
        self._forget_gone(request.name)
        self._keep_gone(request.name, WithdrawnSubscription(request.number, until))
        return RequestVerdict.TAKEN

    @staticmethod
    def _is_as(request: SubscribeRequest | WithdrawRequest, before: Record) -> bool:
        if request.number != before.number or isinstance(request, WithdrawRequest) != isinstance(
            before, WithdrawnSubscription
        ):
            return False
        return isinstance(before, WithdrawnSubscription) or (
            isinstance(request, SubscribeRequest)
            and (request.until, request.answers, request.subscription)
            == (before.until, before.answers, before.subscription)
        )
