"""What was handed up, on the root's disk until its day lapses: it is sent to whoever asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec
import trio

from hushcast_brokers.broker.forwarding import BrokerForwarding
from hushcast_brokers.broker.publications import WORDS
from hushcast_protocol.base.crypto.hashes import LABEL
from hushcast_protocol.base.crypto.secrets import Secret
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, Refusal
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import decoder, encode
from hushcast_protocol.brokers.frames import MAX_BROKER_FRAME
from hushcast_protocol.brokers.full.group_action import GroupAction
from hushcast_protocol.brokers.full.hand_up import MAX_KEPT, HandedUpMessages, as_published, check_words
from hushcast_protocol.brokers.full.item_labels import ItemLabel
from hushcast_protocol.content.messages import Message, check_message
from hushcast_runtime.context import Context
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import restore

GATHERED_FOR = 10.0  # seconds in which those are gathered who ask: for each, all of a word comes again
AT_ONCE = 64  # messages looked up before others have their turn

_KIND = RecordKind(
    "handed-up",
    StateOwner.BROKER,
    holds="at the root, under layers: messages that were handed up",
    lifetime="until their day has lapsed",
    bound=f"{MAX_KEPT // 2**20} MiB",
)
_decode: Callable[[bytes], Message] = decoder(Message, "message", MAX_BROKER_FRAME)


class HandedUpStore:
    """The root's."""

    def __init__(
        self, action: GroupAction, secret: Secret, forwarding: BrokerForwarding, context: Context
    ) -> None:
        """`secret` is the root's, of which contents are made."""
        self._action = action
        self._secret = secret
        self._forwarding = forwarding
        self._store = context.store
        self._counters = context.counters
        self._kept = HandedUpMessages()
        self._due = trio.Event()

    async def load(self) -> None:
        """Know what was kept before a restart, and look all of it up: nobody knows to whom it went."""
        await restore(self._store, _KIND, self._take_up)

    def _take_up(self, name: bytes, value: bytes) -> None:
        message = _decode(value)
        check_message(message)
        if message.id != name:
            raise DecodeError("a message is kept under another's id")
        self._kept.put(message)
        self._due.set()

    async def take(self, outer: Message, labels: Sequence[ItemLabel]) -> None:
        """Keep what was handed up, under the labels that are the root's; raise `Refusal`."""
        try:
            published = as_published(self._action, self._secret, outer, labels)
            check_words(published, await self._words(published.id))
        except AuthenticationError:
            raise Refusal("form") from None
        if self._kept.put(published):
            self._counters.add("messages_returned")
            kept = msgspec.structs.replace(published, tokens=tuple(self._kept.words(published.id)))
            self._store.write_soon(Change(_KIND, kept.id, encode(kept)))
            self._due.set()

    def asked(self, words: Iterable[bytes]) -> None:
        """Hear for which words somebody has asked, or is to have all once more."""
        self._kept.asked(words)
        if self._kept.is_due:
            self._due.set()

    async def run(self) -> None:
        """Look up what is due, until cancelled."""
        while True:
            await self._due.wait()
            await trio.sleep(GATHERED_FOR)
            self._due = trio.Event()
            await self._store.write()  # what is read is what is on disk
            for number, name in enumerate(self._kept.take_due()):
                for _, value in await self._store.scan(_KIND, name, limit=1):
                    self._forwarding.put(self._forwarding.sends(_decode(value)))
                if number % AT_ONCE == 0:
                    await trio.lowlevel.checkpoint()

    def expire(self, day: int) -> None:
        """Forget the days up to this one."""
        self._store.write_soon(*(Change(_KIND, name, None) for name in self._kept.expire(day)))

    async def _words(self, published: bytes) -> set[bytes]:
        """Return under which words a message was published; none where the root does not know it."""
        found = await self._store.scan(WORDS, published, limit=1)
        return {value[at : at + LABEL] for _, value in found for at in range(0, len(value), LABEL)}
