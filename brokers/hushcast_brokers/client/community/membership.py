"""Membership: a daemon in its community, or why it is not; what it publishes is sealed to the others."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import trio

from hushcast_brokers.community.held_charters import HeldCharters
from hushcast_brokers.tree_request import BrokerContact, ask
from hushcast_protocol.base.backoff import Backoff
from hushcast_protocol.base.crypto.key_agreement import agreement_public
from hushcast_protocol.base.errors import AuthenticationError, PeerError, Refusal
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.community.community_epochs import MemberEpoch
from hushcast_protocol.brokers.community.sealed_filter import seal_words
from hushcast_protocol.brokers.frames import (
    MAX_BROKER_FRAME,
    AskCharters,
    Communities,
    FromAbove,
    NewCharter,
)
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_protocol.content.messages import Message
from hushcast_runtime.context import Context
from hushcast_runtime.logs import log
from hushcast_runtime.transports.base import Transport, TransportError

FRESH = 60.0  # seconds for which what was heard of charters is believed before something is published
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 300.0  # seconds between two questions to the root

_NONE = "this daemon is in no community: `hushcast admin community join` says of which it is to be a member"
_UNHEARD = (
    "no charter of this daemon's community has come yet: the root's operator lists the community, and its"
    " keeper hands the charter in with `hushcast admin community send`"
)
_OUT = (
    "this daemon is not in its community: its keeper admits it with `hushcast admin community admit` and the"
    " key that `hushcast admin community join` shows here"
)


class Membership:
    """One daemon's part in the one community that its configuration names."""

    def __init__(
        self,
        network: BrokersNetwork,
        community: PublicKey | None,
        charters: HeldCharters,
        transport: Transport,
        context: Context,
    ) -> None:
        """`charters` are those of the community alone; `None`: the configuration names none."""
        self.charters = charters
        self._network = network
        self._community = community
        self._transport = transport
        self._env = context.env
        self._asking = trio.Lock()
        self._heard_at: float | None = None
        self._wanted = trio.Event()
        self.is_told: Callable[[], bool] = lambda: False
        """Whether an edge broker says each newer charter; then nobody needs to be asked."""

    def epochs(self) -> list[MemberEpoch]:
        """Return the epochs under which to ask for anything."""
        return [] if self._community is None else self.charters.epochs.of(self._community)

    def missing(self) -> str | None:
        """Say why this daemon is not in its community; nothing if it is. If it can be asked, that is done."""
        if self._community is None:
            return _NONE
        if self.current() is not None:
            return None
        self._wanted.set()
        return _UNHEARD if self.charters.newest(self._community) is None else _OUT

    def current(self) -> MemberEpoch | None:
        """Return the epoch to publish under."""
        if self._community is None:
            return None
        return self.charters.epochs.current(self._community, self._env.now())

    def has(self, broker: PublicKey) -> bool:
        """Tell whether a broker is in this daemon's community."""
        charter = None if self._community is None else self.charters.newest(self._community)
        try:
            return charter is not None and agreement_public(broker) in charter.members
        except AuthenticationError:
            return False

    def heard(self, frame: Communities | NewCharter) -> None:
        """Hear a charter from an edge broker, or the root."""
        self.charters.hear(frame)

    def doubt(self) -> None:
        """Ask again before the next publication: something says that the epoch is not the newest."""
        self._heard_at = None

    async def sealed(self, message: Message, root: BrokerContact) -> Message:
        """Return a message as it is handed over, its words sealed; raise `Refusal` with what is missing.

        Raises `TransportError` or `PeerError` where the root had to be asked first, and did not answer.
        """
        is_fresh = self._heard_at is not None and self._env.elapsed() - self._heard_at < FRESH
        if not is_fresh and not (self._heard_at is not None and self.is_told()):
            await self.ask(root)
        epoch = self.current()
        if epoch is None:
            raise Refusal(self.missing() or _OUT)
        tokens = seal_words(epoch, message.id, message.tokens, self._env.randomness)
        return msgspec.structs.replace(message, tokens=tokens)

    async def keep(self, root: Callable[[], BrokerContact]) -> None:
        """Ask the root for as long as this daemon is in no epoch of its community; until cancelled."""
        backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE, self._env.randomness)
        while True:
            if self._community is None:
                await trio.sleep_forever()
            if self.current() is not None:
                backoff.reset()
                await self.charters.changed()
                continue
            try:
                await self.ask(root())
            except (PeerError, TransportError) as error:
                log.info("the root does not say who is in the community", reason=str(error))
            if self.current() is None:
                self._wanted = trio.Event()
                with trio.move_on_after(backoff.next()):
                    await self._wanted.wait()

    async def ask(self, root: BrokerContact) -> None:
        """Take newer charters that the root holds. Raises `TransportError` or `PeerError`."""
        async with self._asking:
            network, env = self._network, self._env
            link = Link.initiate(network.id, root.key, env.randomness, MAX_BROKER_FRAME, wire=root.spoken())
            question = AskCharters(self.charters.known)
            await ask(root, link, (question,), self._hear, self._transport, env)
            self._heard_at = env.elapsed()

    async def _hear(self, frame: FromAbove) -> None:
        if isinstance(frame, Communities | NewCharter):
            self.heard(frame)
