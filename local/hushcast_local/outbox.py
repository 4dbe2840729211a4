"""The outbox: a write-ahead store of publications, from before their first drop until a receipt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import trio

from hushcast_protocol.base.errors import DecodeError, Refusal
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import decoder, encode
from hushcast_protocol.content.messages import Message, check_message
from hushcast_runtime.environment import Environment
from hushcast_runtime.storage.changes import Change, packed
from hushcast_runtime.storage.recovery import restore, sized
from hushcast_runtime.storage.store import Store, record_reader

MAX_PUBLICATIONS = 1_000  # waiting at once; each is a task that sleeps until its next attempt
MAX_OUTBOX = 32 * 1024 * 1024  # bytes of bodies waiting, on disk and in memory; 120 of the largest
MAX_TAKEN = 1_024  # publications with a receipt whose tokens are remembered, for applications that ask again
MAX_GIVEN_UP = 256  # publications remembered as given up; the oldest are forgotten first

_MESSAGE = RecordKind(
    "outbox",
    StateOwner.DAEMON,
    holds="publications that wait for a receipt, sealed",
    lifetime="until a receipt, or for 14 days; those that are signed until their day has lapsed",
    bound=f"{MAX_PUBLICATIONS:,}, of {MAX_OUTBOX // 2**20} MiB",
)
_STATE = RecordKind(
    "outbox-state",
    StateOwner.DAEMON,
    holds="how far publications are, and their topics, secrets too; the name of the topic of those given up",
    lifetime="as long as they wait; of those given up until `outbox --cancel`",
    bound=f"the last {MAX_GIVEN_UP} given up",
)
_ID = 32  # bytes of a message's id
_SCAN = 15  # records read at once; the largest have 256 KiB
_decode: Callable[[bytes], Message] = decoder(Message, "message", 512 * 1024)


class Reseal(msgspec.Struct, frozen=True, array_like=True):
    """What it takes to seal a publication anew on a later day."""

    link: str
    tags: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Show nothing of it."""
        return "Reseal(...)"


class PartCut(msgspec.Struct, frozen=True, array_like=True):
    """What it takes to seal the parts of a publication."""

    link: str
    tags: tuple[str, ...]
    secret: bytes
    """Of 32 bytes, from which comes the key that signs the parts."""

    def __repr__(self) -> str:
        """Show nothing of it."""
        return "PartCut(...)"


class _State(msgspec.Struct, frozen=True, array_like=True):
    """The mutable state of a publication; the sealed message does not change."""

    topic: str
    since: float
    origins: list[bytes]
    attempts: int
    reason: str | None
    given_up: bool
    token: bytes | None = None
    width: int = 0
    reseal: Reseal | None = None
    sealed_id: bytes | None = None
    cut: PartCut | None = None


_decode_state = record_reader(_State, "publication")


class NoReceiptYet(Refusal):
    """Nobody has given a receipt so far; the publication stays in the outbox, which keeps retrying."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"{reason}: the message stays in the outbox and is tried again, so do not publish it again"
        )


@dataclass(eq=False)
class OutboxPublication:
    """A message being published: sealed once a day, so that every retry of the day has the same id."""

    id: bytes
    """Under which it was sealed first, and by which people know it."""
    message: Message = field(repr=False)
    topic: str = field(repr=False)
    since: float
    """Unix time at which it was published."""
    origins: list[bytes] = field(default_factory=list, repr=False)
    """The keys of those that gave a receipt: relays, the server, or the root."""
    attempts: int = 0
    reason: str | None = None
    """Why the last drop got no receipt."""
    width: int = 0
    """The topic's."""
    next_attempt: float | None = None
    """Unix time; `None` while it is being dropped."""
    token: bytes | None = field(default=None, repr=False)
    """By which an application that lost its connection asks for it again."""
    reseal: Reseal | None = field(default=None, repr=False)
    """`None`: it is given up when its day is over."""
    cut: PartCut | None = field(default=None, repr=False)
    """`None`: it goes as it is."""
    is_covered: bool = False
    """Whether it goes in letters: then nobody is handed it directly."""
    waits: bool = False
    """Whether drops have failed: only from then on is on disk what seals it anew."""
    settled: trio.Event = field(default_factory=trio.Event)
    """Set with the first receipt, or when the first attempts have failed, or when it was cancelled."""
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)

    async def taken(self) -> None:
        """Return with the first receipt; raise `NoReceiptYet`, or `Refusal` if somebody took it back."""
        await self.settled.wait()
        if self.scope.cancel_called:
            raise Refusal("the message was taken back from the outbox")
        if not self.origins:
            raise NoReceiptYet(self.reason or "nobody gave a receipt")


@dataclass(frozen=True)
class ReceiptedPublication:
    """A publication that left the outbox with a receipt."""

    id: bytes
    topic: str = field(repr=False)

    async def taken(self) -> None:
        """Return at once."""


class Outbox:
    """All publications of one daemon that wait for a receipt, and those that were given up."""

    def __init__(self, env: Environment, store: Store) -> None:
        self._env = env
        self._store = store
        self._waiting: dict[bytes, OutboxPublication] = {}
        self._given_up: dict[bytes, _State] = {}
        self._by_token: dict[bytes, OutboxPublication] = {}
        self._taken: dict[bytes, ReceiptedPublication] = {}
        self._size = 0

    def __len__(self) -> int:
        """How many publications wait."""
        return len(self._waiting)

    async def load(self) -> list[OutboxPublication]:
        """Read back what a restart interrupted; return what waits, oldest first."""
        states: dict[bytes, _State] = {}
        messages: dict[bytes, Message] = {}

        def take(key: bytes, value: bytes) -> None:
            message = _decode(value)
            check_message(message)
            if key not in states or message.id != (states[key].sealed_id or key):
                raise DecodeError("nobody knows what became of a publication")
            messages[key] = message

        await restore(
            self._store, _STATE, lambda key, value: states.update({sized(key, _ID): _decode_state(value)})
        )
        await restore(self._store, _MESSAGE, take, at_once=_SCAN)
        oldest_first = sorted(states.items(), key=lambda item: item[1].since)
        self._given_up = {key: state for key, state in oldest_first if state.given_up}
        for key, state in oldest_first:
            if key in messages:
                self._hold(
                    OutboxPublication(
                        key,
                        messages[key],
                        state.topic,
                        state.since,
                        list(state.origins),
                        state.attempts,
                        state.reason,
                        state.width,
                        token=state.token,
                        reseal=state.reseal,
                        cut=state.cut,
                        waits=state.reseal is not None,
                    )
                )
        return list(self._waiting.values())

    def put(
        self,
        topic: str,
        message: Message,
        token: bytes | None = None,
        width: int = 0,
        reseal: Reseal | None = None,
    ) -> OutboxPublication:
        """Take a publication; `durable` tells when it is on disk. Raises `Refusal` where there is no room."""
        full = len(self._waiting) >= MAX_PUBLICATIONS or self._size + len(message.body) > MAX_OUTBOX
        if full:
            raise Refusal(
                f"the outbox is full: {len(self._waiting)} messages with {self._size} bytes wait for a "
                "receipt; `hushcast outbox` shows why, and --cancel takes one back"
            )
        publication = OutboxPublication(
            message.id, message, topic, self._env.now(), width=width, token=token, reseal=reseal
        )
        self._hold(publication)
        self._store.write_soon(Change(_MESSAGE, message.id, encode(message)), _state_of(publication))
        return publication

    async def durable(self) -> None:
        """Return once all that was put is on disk."""
        await self._store.write()

    def known(self, token: bytes) -> OutboxPublication | ReceiptedPublication | None:
        """Return the publication with an application's token, if it waits or had its receipt lately."""
        return self._by_token.get(token) or self._taken.get(token)

    def holds(self, publication: OutboxPublication) -> bool:
        """Tell whether it still waits: it neither left, nor was it cancelled or given up."""
        return publication.id in self._waiting

    def note(self, publication: OutboxPublication) -> None:
        """Write down receipts and attempts; a crash in the next moments only costs another drop."""
        if self.holds(publication):
            self._store.write_soon(_state_of(publication))

    def replace(self, publication: OutboxPublication, message: Message) -> None:
        """Take what was sealed anew in the place of the message; nobody has it yet."""
        if self.holds(publication):
            publication.message = message
            publication.origins = []
            record = Change(_MESSAGE, publication.id, encode(message))
            self._store.write_soon(record, _state_of(publication))

    def leave(self, publication: OutboxPublication) -> None:
        """Forget a publication that the network has taken over."""
        self._release(publication)
        self._store.write_soon(*_deleted(publication.id))
        if publication.token is not None:
            self._taken[publication.token] = ReceiptedPublication(publication.id, publication.topic)
            if len(self._taken) > MAX_TAKEN:
                del self._taken[next(iter(self._taken))]

    def give_up(self, publication: OutboxPublication) -> None:
        """Keep only the note that nobody took this publication in time."""
        self._release(publication)
        change = _state_of(publication, given_up=True)
        assert change.value is not None
        self._given_up[publication.id] = _decode_state(packed(change.value))
        self._store.write_soon(Change(_MESSAGE, publication.id, None), change)
        while len(self._given_up) > MAX_GIVEN_UP:
            first = next(iter(self._given_up))
            del self._given_up[first]
            self._store.write_soon(*_deleted(first))

    async def cancel(self, message_id: bytes) -> str | None:
        """Remove a publication, waiting or given up; durable on return.

        Returns its topic's name, `None` if there is no such publication here.
        """
        if (publication := self._waiting.get(message_id)) is not None:
            topic = publication.topic
            self._release(publication)
            publication.scope.cancel()
            publication.settled.set()
        elif (state := self._given_up.pop(message_id, None)) is not None:
            topic = state.topic
        else:
            return None
        await self._store.write(*_deleted(message_id))
        return topic

    def describe(self) -> list[dict[str, Any]]:
        """Describe what waits, oldest first, then what was given up."""
        waiting = [
            _described(
                publication.id,
                publication,
                "waiting" if publication.next_attempt or publication.is_covered else "dropping",
            )
            | {"next_attempt": publication.next_attempt and round(publication.next_attempt, 3)}
            for publication in self._waiting.values()
        ]
        return waiting + [_described(key, state, "given up") for key, state in self._given_up.items()]

    def _hold(self, publication: OutboxPublication) -> None:
        self._waiting[publication.id] = publication
        if publication.token is not None:
            self._by_token[publication.token] = publication
        self._size += len(publication.message.body)

    def _release(self, publication: OutboxPublication) -> None:
        if self._waiting.pop(publication.id, None) is not None:
            self._size -= len(publication.message.body)
            if publication.token is not None:
                self._by_token.pop(publication.token, None)


def _described(message_id: bytes, what: OutboxPublication | _State, state: str) -> dict[str, Any]:
    return {
        "id": message_id.hex(),
        "topic": what.topic,
        "since": round(what.since, 3),
        "state": state,
        "receipts": len(what.origins),
        "attempts": what.attempts,
        "reason": what.reason,
        "next_attempt": None,
    }


def _state_of(publication: OutboxPublication, given_up: bool = False) -> Change:
    state = _State(
        publication.topic,
        publication.since,
        list(publication.origins),
        publication.attempts,
        publication.reason,
        given_up,
        publication.token,
        publication.width,
        publication.reseal if publication.waits and not given_up else None,
        None if given_up else publication.message.id,
        None if given_up else publication.cut,
    )
    return Change(_STATE, publication.id, encode(state))


def _deleted(message_id: bytes) -> tuple[Change, Change]:
    return Change(_MESSAGE, message_id, None), Change(_STATE, message_id, None)
