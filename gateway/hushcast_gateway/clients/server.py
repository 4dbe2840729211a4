"""The server: any MQTT client's stream, from its CONNECT to its end."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

import trio

from hushcast_gateway.broker_state import BrokerState
from hushcast_gateway.clients.client_stream import ClientStream, relieve
from hushcast_gateway.clients.user_turns import AT_ONCE, ServingTurns, Turn
from hushcast_protocol.base.shares import User
from hushcast_protocol.mqtt.connections import MqttConnection
from hushcast_protocol.mqtt.handshake import refusal, refuse
from hushcast_protocol.mqtt.limits import LARGEST_PACKET
from hushcast_protocol.mqtt.reason_codes import PacketError, Reason
from hushcast_protocol.mqtt.refusals import RefusalCause
from hushcast_protocol.mqtt.topics.permissions import Permissions
from hushcast_protocol.mqtt.wire.codec import Decoder
from hushcast_protocol.mqtt.wire.packets import Connect, Packet
from hushcast_runtime.logs import log
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.connection_slots import ConnectionSlots

CONNECT_WITHIN = 10.0  # seconds from a stream to its CONNECT, and until that is authenticated
MAX_STRANGERS = 256  # connections without an accepted CONNECT; one more takes the place of another
MAX_LEAVING = 256  # clients that still read what was queued; one more takes the place of another
LEAVE_WITHIN = 30.0  # seconds that they may take for it
MAX_CONNECT = 128 * 1024  # bytes of a CONNECT: the longest will and some; strangers can make us keep no more
MAX_OWED = 1_000  # messages of QoS 1 of one client that wait for disk or network; then it is not read from
PATIENCE = 1.5  # times the keep alive after which a silent client is gone (section 3.1.2.10)

Peer = Any
"""Whatever the listener knows of who connects: a user id, a certificate's names, nothing."""

Authenticate = Callable[[Connect, Peer], Awaitable[Permissions | Reason]]
"""Says what a client may do, or why it may not connect."""


class Server:
    """Serves clients on streams that listeners accept."""

    def __init__(
        self, state: BrokerState, authenticate: Authenticate, maximum_packet: int | None = None
    ) -> None:
        """`maximum_packet` is in bytes, as the broker's settings have it."""
        self._state = state
        self._broker = state.broker
        self._authenticate = authenticate
        self._maximum_packet = LARGEST_PACKET if maximum_packet is None else maximum_packet
        self._slots = ConnectionSlots(MAX_STRANGERS, state.env.below)
        self._crowded: set[ClientStream] = set()
        self._leaving = ConnectionSlots(MAX_LEAVING, state.env.below)
        self._turns = ServingTurns()
        self.internal_errors = 0

    async def serve(self, stream: trio.abc.Stream, peer: Peer = None) -> None:
        """Serve one client until its end, and close its stream. Never raises but when cancelled."""
        connection = ClientStream(stream, self._crowded, self._state.env.now())
        try:
            await self._serve(connection, peer)
        finally:
            await connection.finish()

    async def _serve(self, connection: ClientStream, peer: Peer) -> None:
        async with trio.open_nursery() as nursery:
            writing = trio.Event()

            async def write() -> None:
                try:
                    await connection.write(partial(self._drained, connection))
                except TransportError:
                    connection.close(b"")
                    nursery.cancel_scope.cancel()
                finally:
                    writing.set()

            nursery.start_soon(write)
            with connection.reading:
                try:
                    await self._converse(connection, peer)
                except TransportError:
                    pass
                except Exception as error:
                    self.internal_errors += 1
                    log.error("a client's connection failed in us", error=type(error).__name__)
            connection.close(b"")
            with suppress(TransportError), self._leaving.place(LEAVE_WITHIN):
                await writing.wait()
                await connection.linger()
            nursery.cancel_scope.cancel()

    async def _converse(self, connection: ClientStream, peer: Peer) -> None:
        decoder = Decoder(self._maximum_packet, max_connect=min(MAX_CONNECT, self._maximum_packet))
        first = await self._first(connection, decoder, peer)
        if first is None:
            return
        link, keep_alive = first
        connection.link = link
        try:
            await self._read(connection, link, decoder, PATIENCE * keep_alive or math.inf)
        finally:
            self._broker.gone(link, self._state.env.now())
            self._state.changed()

    async def _first(
        self, connection: ClientStream, decoder: Decoder, peer: Peer
    ) -> tuple[MqttConnection, int] | None:
        """Return the link and its keep alive; `None` if there is no client. Leave what is behind CONNECT."""
        with self._slots.place(CONNECT_WITHIN):
            packets: list[Packet] = []
            while not packets:
                data = await connection.receive()
                if not data:
                    return None
                try:
                    packets = decoder.feed(data, 1)
                except PacketError as error:
                    is_other = error.reason == Reason.UNSUPPORTED_PROTOCOL_VERSION and error.form is not None
                    self._refused(error, RefusalCause.OLD if is_other else RefusalCause.NO_MQTT)
                    connection.close(b"" if error.form is None else refusal(error.form, error.reason))
                    return None
            connection.packets_in = 1
            (connect,) = packets
            assert isinstance(connect, Connect), "the decoder lets nothing else come first"
            verdict = await self._authenticate(connect, peer)
        if isinstance(verdict, Reason):
            now, named = self._state.env.now(), connect.username or ""
            self._broker.refusals.note(RefusalCause.NOT_LET_IN, now, None, connect.client_id, named)
            refuse(connection, connect, verdict)
            return None
        async with self._turns.of(verdict.user):
            accepted = self._broker.connect(connection, connect, verdict, self._state.env.now())
            self._state.changed()
        return accepted

    async def _read(
        self, connection: ClientStream, link: MqttConnection, decoder: Decoder, patience: float
    ) -> None:
        turn = self._turns.of(link.session.user)
        with trio.CancelScope(deadline=trio.current_time() + patience) as alive:
            while not connection.is_closing:
                if decoder.has_more:  # a read may hold tens of thousands of packets
                    data = b""
                    await trio.lowlevel.checkpoint()
                elif not (data := await connection.receive()):
                    return
                async with turn:
                    try:
                        packets = decoder.feed(data, AT_ONCE)
                    except PacketError:
                        packets = []
                    connection.packets_in += len(packets)
                    if packets:
                        alive.deadline = trio.current_time() + patience
                    taken = self._receive(link, packets, turn)
                while taken < len(packets):
                    async with turn:
                        taken += self._receive(link, packets[taken:], turn)
                if decoder.error is not None:
                    self._refused(decoder.error, None, link.session.user, link.session.client_id)
                    link.close(None if decoder.error.silent else decoder.error.reason)
                    return
                if self._crowded and not decoder.has_more:
                    await relieve(self._crowded)
                if connection.is_full or link.owed > MAX_OWED:
                    alive.deadline = math.inf
                    await self._pause(connection, link)
                    alive.deadline = trio.current_time() + patience
        if alive.cancelled_caught:
            link.close(Reason.KEEP_ALIVE_TIMEOUT)

    def _refused(
        self, error: PacketError, cause: RefusalCause | None, user: User = None, client_id: str = ""
    ) -> None:
        """Note a client whose packets end its connection: for a bound, or for the cause that is given."""
        if error.reason == Reason.PACKET_TOO_LARGE:
            cause = RefusalCause.TOO_LARGE
        if cause is not None:
            self._broker.refusals.note(cause, self._state.env.now(), user, client_id)

    def _receive(self, link: MqttConnection, packets: list[Packet], turn: Turn) -> int:
        """Have the broker take packets, as many as the turn has time for; return how many it took."""
        receive, clock, ends = self._broker.receive, turn.clock, turn.ends
        now, taken = self._state.env.now(), 0
        for packet in packets:
            receive(link, packet, now)
            taken += 1
            if clock() > ends:
                break
        turn.packets_left -= taken
        self._state.changed()
        return taken

    def _drained(self, connection: ClientStream) -> None:
        if connection.link is not None:
            self._broker.drained(connection.link, self._state.env.now())
            self._state.changed()

    async def _pause(self, connection: ClientStream, link: MqttConnection) -> None:
        """Wait until a client has taken some of what it was sent, or what it sent is in safety."""
        while connection.is_full or link.owed > MAX_OWED:
            await connection.progress()
