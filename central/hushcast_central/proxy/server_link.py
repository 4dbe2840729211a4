"""The server link: a proxy's one link to the server, kept open; many users' requests go over it at once."""

from __future__ import annotations

from functools import partial
from typing import Literal, Protocol

import trio

from hushcast_central.held_wire import HeldWire
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.backoff import Backoff
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import PeerError, Refusal
from hushcast_protocol.base.link.hop_link import QUIET
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.base.versions.wires import OtherWire
from hushcast_protocol.central.frames import (
    MAX_CENTRAL_FRAME,
    AcknowledgeDeliveries,
    AskTransformationFactor,
    Attach,
    AttachAnswer,
    DeliveriesAcknowledged,
    Detach,
    FromServer,
    Ping,
    Pong,
    ProxyRequest,
    Publish,
    ServerAnswer,
    ServerDelivery,
    Subscribe,
    TransformationFactor,
    UserAnswer,
    WithdrawTokens,
    decode_from_server,
)
from hushcast_protocol.central.network import CentralNetwork
from hushcast_protocol.central.rerouting import WrappedMessage
from hushcast_runtime.context import Context
from hushcast_runtime.logs import log
from hushcast_runtime.other_wires import OtherWires
from hushcast_runtime.transports.base import Transport, TransportError
from hushcast_runtime.transports.channel import Channel, open_channel
from hushcast_runtime.transports.channel_writer import Writer

MAX_REQUESTS = 1024  # of users, whose answers are awaited at once
ANSWER_WITHIN = 60.0  # seconds; the server's disk may be busy, and Tor slow
SILENT = 3 * QUIET  # seconds without a frame, signs of life included, after which the link is dead
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds between attempts to reach the server

ServerRequest = AskTransformationFactor | Subscribe | WithdrawTokens | Attach | Publish

LinkState = Literal["open", "not listed", "not reached"]
"""`not listed`: the server closed the link before it said anything."""


class DeliverySink(Protocol):
    """Who is attached through this proxy."""

    def deliver(self, wrapped: WrappedMessage) -> None:
        """Take a delivery, under the server's key."""

    def close(self) -> None:
        """Hear that the attachment is over."""


class _Awaited:
    """What a user asked, and the answer, once it is there; none if the link ended."""

    __slots__ = ("answer", "over", "what")

    def __init__(self, what: ServerRequest) -> None:
        self.what = what
        self.over = trio.Event()
        self.answer: TransformationFactor | UserAnswer | AttachAnswer | None = None


class ServerLink:
    """One proxy's link to the server."""

    def __init__(
        self,
        network: CentralNetwork,
        seed: Seed,
        address: Address,
        transport: Transport,
        wire: HeldWire,
        context: Context,
    ) -> None:
        self._network = network
        self._seed = seed
        self._address = address
        self._transport = transport
        self.wire = wire
        self._env = context.env
        self._counters = context.counters
        self.other_wires = OtherWires(context.env.elapsed, context.counters)
        self._spawn = context.spawn
        self._writer: Writer | None = None
        self._numbers = 0
        self._awaited: dict[int, _Awaited] = {}
        self._receivers: dict[int, DeliverySink] = {}
        self._acknowledging: dict[
            int, AcknowledgeDeliveries
        ] = {}  # what each receiver said last, until it is written
        self.state: LinkState = "not reached"
        self.difficulty = 0
        """Bits of the stamps that are to be asked for, as the server's room for this proxy is taken."""
        self._is_told = False

    @property
    def is_open(self) -> bool:
        """Tell whether the server is there."""
        return self._writer is not None

    async def request(
        self, what: AskTransformationFactor | Subscribe | WithdrawTokens | Publish
    ) -> TransformationFactor | UserAnswer:
        """Ask the server; raise `TransportError` where no answer comes, `Refusal` where too many wait."""
        answer = await self._ask(self._number(), what)
        if isinstance(answer, AttachAnswer):
            raise self._fault("the server attached whom nobody asked it to")
        return answer

    async def attach(self, what: Attach, receiver: DeliverySink) -> tuple[int, AttachAnswer | UserAnswer]:
        """Attach a receiver; return its number (`acknowledge`, `detach`) and the answer. Raises as above."""
        number = self._number()
        self._receivers[number] = receiver
        try:
            answer = await self._ask(number, what)
            if isinstance(answer, TransformationFactor):
                raise self._fault("the server answered another question")
        except BaseException:
            self.detach(number)
            raise
        if isinstance(answer, UserAnswer):
            self._receivers.pop(number, None)
        return number, answer

    def acknowledge(self, number: int, acknowledged: AcknowledgeDeliveries) -> None:
        """Pass on what a receiver has; while one waits to be written, the next takes its place."""
        if self._writer is None or number not in self._receivers:
            return
        if number not in self._acknowledging:
            self._writer.post_later(partial(self._acknowledgement, number))
        self._acknowledging[number] = acknowledged

    def detach(self, number: int) -> None:
        """Tell the server that a receiver is gone."""
        if self._receivers.pop(number, None) is not None and self._writer is not None:
            self._writer.post(Detach(number))

    async def run(self) -> None:
        """Keep the link open until cancelled."""
        backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE, self._env.randomness)
        while True:
            try:
                await self._live(backoff)
            except (PeerError, TransportError) as error:
                self.other_wires.note(error)
                is_fault = isinstance(error, PeerError) and not isinstance(error, OtherWire)
                self._counters.add("server_faults" if is_fault else "links_failed")
                log.debug("the server was not reached, or its link broke", reason=str(error))
            await trio.sleep(backoff.next())

    async def _live(self, backoff: Backoff) -> None:
        """Open the link and take what comes until it ends; pauses begin anew once the server has spoken."""
        # What is not spoken here may be given up again: over this link a proxy hears it.
        link = Link.initiate(
            self._network.id,
            self._network.server,
            self._env.randomness,
            MAX_CENTRAL_FRAME,
            self._seed,
            wire=self.wire.now.nearest,
        )
        try:
            channel, _ = await open_channel(
                self._transport, self._address, self._env.isolation(), link, decode_from_server
            )
        except (PeerError, TransportError):
            self._note("not reached")
            raise
        try:
            await self._talk(channel, backoff)
        finally:
            self._note("not reached" if self.is_open else "not listed")
            self._end()
            await channel.aclose()

    async def _talk(self, channel: Channel[FromServer], backoff: Backoff) -> None:
        writer = Writer(channel, self._spawn)
        writer.post(Ping())
        with writer.scope as scope:
            scope.deadline = trio.current_time() + SILENT
            while batch := await channel.receive():
                scope.deadline = trio.current_time() + SILENT
                if not self.is_open:
                    backoff.reset()
                    self._counters.add("links_opened")
                    self._writer = writer
                    self._note("open")
                    self._spawn(self._show_life, writer)
                for frame in batch:
                    self._take(frame)

    def _note(self, state: LinkState) -> None:
        if state == self.state and self._is_told:
            return
        self.state, self._is_told = state, True
        if state == "open":
            log.info("connected to the server")
        elif state == "not listed":
            log.info("waiting for the server to list this proxy")
        else:
            log.warning("the server is not reached")

    async def _show_life(self, writer: Writer) -> None:
        while self._writer is writer:
            await trio.sleep(QUIET)
            if self._writer is writer:
                writer.post(Ping())

    def _take(self, frame: FromServer) -> None:
        if isinstance(frame, ServerAnswer):
            if (awaited := self._awaited.get(frame.number)) is not None:
                awaited.answer = frame.what
                awaited.over.set()
        elif isinstance(frame, ServerDelivery):
            if (receiver := self._receivers.get(frame.attachment)) is not None:
                receiver.deliver(frame.wrapped)
        elif isinstance(frame, Pong):
            self.difficulty = frame.difficulty
            self.wire.take(frame.announced)
        elif isinstance(frame, Detach) and (gone := self._receivers.pop(frame.attachment, None)) is not None:
            gone.close()

    def _end(self) -> None:
        self._writer = None
        self._acknowledging.clear()
        for awaited in self._awaited.values():
            awaited.over.set()
        receivers, self._receivers = self._receivers, {}
        for receiver in receivers.values():
            receiver.close()

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    async def _ask(
        self, number: int, what: ServerRequest
    ) -> TransformationFactor | UserAnswer | AttachAnswer:
        writer = self._writer
        if writer is None:
            raise TransportError("the server is not there")
        if len(self._awaited) >= MAX_REQUESTS:
            raise Refusal("quota")
        awaited = self._awaited[number] = _Awaited(what)
        try:
            writer.post_later(partial(self._request, number))
            with trio.move_on_after(ANSWER_WITHIN):
                await awaited.over.wait()
        finally:
            del self._awaited[number]
        if awaited.answer is None:
            raise TransportError("the server did not answer")
        return awaited.answer

    def _request(self, number: int) -> ProxyRequest | None:
        """Make a request whose turn to be written has come; none where nobody waits for its answer."""
        awaited = self._awaited.get(number)
        return ProxyRequest(number, awaited.what) if awaited is not None else None

    def _acknowledgement(self, number: int) -> DeliveriesAcknowledged | None:
        last = self._acknowledging.pop(number, None)
        return DeliveriesAcknowledged(number, last.number, last.proof) if last is not None else None

    def _fault(self, text: str) -> PeerError:
        self._counters.add("server_faults")
        return PeerError(text)
