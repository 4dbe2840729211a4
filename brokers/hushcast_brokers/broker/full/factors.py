"""Factors: a broker under `full` asks those above for what its rows are compared by, and answers others."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable
from functools import partial

import msgspec
import trio

from hushcast_brokers.broker.full.full_records import FullRecords
from hushcast_brokers.upstream import Upstream
from hushcast_protocol.base import observations
from hushcast_protocol.base.errors import AuthenticationError, Refusal
from hushcast_protocol.base.wire import PublicKey, encode
from hushcast_protocol.brokers.full.aggregation import (
    AskFactors,
    Factors,
    asking,
    check_asked,
    unblinded,
    with_share,
)
from hushcast_protocol.brokers.full.layer_keys import Keyring, LayerKeys
from hushcast_protocol.brokers.full.layer_positions import LayerPositions
from hushcast_protocol.brokers.full.layers import LayerPath
from hushcast_protocol.brokers.full.rows import Rows
from hushcast_runtime.context import Context
from hushcast_runtime.logs import log
from hushcast_runtime.time_slices import in_steps

AT_ONCE = 128  # questions under way: each costs those above some multiplications
ASKED_AGAIN_AFTER = 60.0  # seconds after which somebody above is asked again who could not answer
MAX_ANSWERS = 65_536  # factors a day for what is below one child: an item each that it may advertise


class LayerFactors:
    """The factors of one broker."""

    def __init__(
        self,
        keys: Keyring,
        layers: int,
        records: FullRecords,
        learned: Callable[[], object],
        context: Context,
    ) -> None:
        """`learned` is called once rows are compared by more factors than before."""
        self._keys = keys
        self._layers = layers
        self._records = records
        self._learned = learned
        self._tracer = context.tracer
        self._counters = context.counters
        self._rows: Rows | None = None
        self._known: dict[tuple[int, LayerPath], LayerKeys] = {}
        self._hopeless: set[tuple[int, LayerPath]] = (
            set()
        )  # what nobody above answers: these have rows of their own
        self._upstream: Upstream | None = None
        self._looks = trio.Event()
        self.agreed: Callable[[int, PublicKey], None] = lambda day, owner: None
        """Called with whom a share was of, for traces."""
        self._answered: Counter[tuple[int, PublicKey]] = Counter()  # by day and child

    def load(self, kept: Iterable[tuple[int, LayerPath, LayerKeys]]) -> None:
        """Take up the factors of before a restart."""
        for day, path, factors in kept:
            self._known[day, path] = factors
            if self._rows is not None:  # also where no item is left under the path: its row may be
                deque(self._rows.learn(day, path, factors), maxlen=0)

    def follow(self, rows: Rows | None) -> None:
        """Compare other rows from now on; what is known of their paths is known still."""
        self._rows = rows
        deque(self._recall(), maxlen=0)  # in one step, as the rows were made in
        self.look()

    def look(self) -> None:
        """See to it that what is missing is asked for."""
        self._looks.set()

    def expire(self, day: int) -> list[tuple[int, LayerPath]]:
        """Forget the days up to this one; return what was known of them."""
        gone = [one for one in self._known if one[0] <= day]
        for one in gone:
            del self._known[one]
        self._hopeless = {one for one in self._hopeless if one[0] > day}
        for old in [one for one in self._answered if one[0] <= day]:
            del self._answered[old]
        return gone

    async def ask(self, upstream: Upstream) -> None:
        """Ask for what is missing, until the link ends; raises `TransportError` then."""
        self._upstream = upstream
        barred: set[tuple[int, LayerPath]] = set()  # what somebody above did not answer just now
        while True:
            self._looks = trio.Event()
            await in_steps(self._recall())
            rows = self._rows
            missing = (
                [] if rows is None else [one for one in rows.missing() if one not in barred | self._hopeless]
            )
            if rows is None or not missing:
                with trio.move_on_after(ASKED_AGAIN_AFTER) as wait:
                    await self._looks.wait()
                if wait.cancelled_caught:
                    barred.clear()
                continue
            for at in range(0, len(missing), AT_ONCE):
                await self._ask_some(upstream, rows, missing[at : at + AT_ONCE], barred)
            self._learned()

    async def answer(
        self, places: LayerPositions | None, seat: PublicKey, child: PublicKey, ask: AskFactors
    ) -> Factors:
        """Answer a broker below, or pass its question on; raise `Refusal`, or `TransportError`."""
        asker = None if places is None else places.seat(ask.asker)
        if places is None or asker is None or not _is_below(places, asker, child, seat):
            raise Refusal("tree")
        if self._answered[ask.day, child] >= MAX_ANSWERS:
            raise Refusal("quota")
        is_last = check_asked(
            ask, places.above(asker), self._layers, self._keys.public, partial(_is_elsewhere, places, asker)
        )
        self._answered[ask.day, child] += 1
        shared = with_share(self._keys, ask, ask.serial)
        for layer in ask.path:
            if layer.target == self._keys.public:
                self.agreed(ask.day, layer.owner)
        if is_last:
            return Factors(ask.serial, shared.route, shared.content)
        if self._upstream is None:
            raise Refusal("quota")
        awaited = self._upstream.post(lambda serial: msgspec.structs.replace(shared, serial=serial))
        found = await self._upstream.factors(awaited)
        return Factors(ask.serial, found.route, found.content)

    def _recall(self) -> Generator[None, None, None]:
        """Have rows compared by what is known, in pieces."""
        rows = self._rows
        for day, path in [] if rows is None else rows.missing():
            if rows is not None and (known := self._known.get((day, path))) is not None:
                yield from rows.learn(day, path, known)

    async def _ask_some(
        self,
        upstream: Upstream,
        rows: Rows,
        some: list[tuple[int, LayerPath]],
        barred: set[tuple[int, LayerPath]],
    ) -> None:
        action, own = self._keys.action, self._keys.public

        def question(serial: int, day: int, path: LayerPath) -> AskFactors:
            return asking(action, own, serial, day, path)

        asked = [upstream.post(partial(question, day=day, path=path)) for day, path in some]
        for (day, path), awaited in zip(some, asked, strict=True):
            try:
                answer = await upstream.factors(awaited)
                factors = unblinded(self._keys, rows.above, self._layers, day, path, answer)
            except (Refusal, AuthenticationError) as error:
                for_now = isinstance(error, Refusal) and error.reason != "form"
                (barred if for_now else self._hopeless).add((day, path))
                self._counters.add("factors_refused")
                log.info("somebody above gave no factor", reason=str(error))
                continue
            await self._learn(rows, day, path, factors)

    async def _learn(self, rows: Rows, day: int, path: LayerPath, factors: LayerKeys) -> None:
        self._counters.add("factors_learned")
        self._known[day, path] = factors
        self._records.keep_factors(day, path, factors)
        if self._tracer.is_on:
            self._tracer.observe(observations.Compared(day, encode(path), factors.route.reveal()))
        await in_steps(rows.learn(day, path, factors))


def _is_below(places: LayerPositions, asker: PublicKey, child: PublicKey, seat: PublicKey) -> bool:
    """Tell whether who asks stands below the child that its question came from, or is the child."""
    above = (asker, *places.seats_above(asker))
    return seat in above and above[above.index(seat) - 1] == child and asker != seat


def _is_elsewhere(places: LayerPositions, asker: PublicKey, key: PublicKey) -> bool:
    """Tell whether a key is that of a broker that does not stand below who asks."""
    seat = places.seat(key)
    return seat is not None and asker not in places.seats_above(seat)
