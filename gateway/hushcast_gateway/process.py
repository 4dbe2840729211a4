"""Runs a gateway as a process: from its settings to a life that a signal ends."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version

import trio

from hushcast_gateway.announcement.announcement import announcements
from hushcast_gateway.announcement.announcer import Announcer
from hushcast_gateway.broker_state import BrokerState, open_broker
from hushcast_gateway.clients.listeners import Listeners
from hushcast_gateway.clients.server import Server
from hushcast_gateway.clients.users import GatewayUsers
from hushcast_gateway.counters import GATEWAY_GAUGES, MQTT, GatewayCounters
from hushcast_gateway.network.gateway_network import GatewayNetwork
from hushcast_gateway.network.no_daemon import DaemonlessNetwork
from hushcast_gateway.network_ways import NetworkWays, read_links
from hushcast_gateway.operators.operator_answers import OperatorAnswers
from hushcast_gateway.passwords import Passwords
from hushcast_gateway.peer import ClientPeer
from hushcast_gateway.program import GATEWAY
from hushcast_gateway.purposes.alias_keys import read_keys
from hushcast_gateway.purposes.purpose_state import configured
from hushcast_gateway.purposes.reservation_removal import ReservationRemover
from hushcast_gateway.purposes.rules import Purposes
from hushcast_gateway.refusals import refusals_found
from hushcast_gateway.sections.purposes_section import PurposesSection, check_vocabulary, vocabulary_of
from hushcast_gateway.settings import GatewaySettings
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.findings import Finding
from hushcast_protocol.mqtt.limits import LARGEST_PACKET
from hushcast_protocol.mqtt.mqtt_settings import MqttSettings
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.topics.permissions import Permissions
from hushcast_protocol.mqtt.wire.packets import Connect
from hushcast_protocol.purposes.purpose_keyring import PurposeKeyring
from hushcast_protocol.purposes.vocabulary import Vocabulary
from hushcast_runtime.environment import Environment, system_environment
from hushcast_runtime.logs import log
from hushcast_runtime.processes.doctors_socket import tell_findings
from hushcast_runtime.processes.process import Load
from hushcast_runtime.processes.process_frame import ProcessFrame, run_process
from hushcast_runtime.processes.questions_socket import answer_questions
from hushcast_runtime.processes.readiness import Health
from hushcast_runtime.storage.state_layout import migrate
from hushcast_runtime.storage.store import SqliteStore
from hushcast_runtime.wording import counted

GOODBYE_WITHIN = 2.0  # seconds that clients may take to hear that the gateway stops


def run_gateway(load: Load[GatewaySettings]) -> None:
    """Run a gateway until SIGTERM or SIGINT; raises the `HushcastError` that ended it.

    SIGHUP goes by the users and purposes of the configuration as it is then, and reads certificates, signed
    vocabularies and grants again.
    """
    run_process(load, _Gateway)


def _ways(settings: GatewaySettings, env: Environment) -> NetworkWays:
    """Return where topics travel; raises `UsageError` for links and keys."""
    if settings.daemon.socket is None:
        return NetworkWays()
    return NetworkWays(settings.gateway, read_links(settings), _keys(settings, env, None))


def _keys(
    settings: GatewaySettings, env: Environment, before: Mapping[str, PurposeKeyring] | None
) -> dict[str, PurposeKeyring]:
    """Return what aliases seal and open by; raises `UsageError`.

    `before` are the aliases of a gateway that runs, of which none gets keys that has none.
    """
    found = {}
    for alias in settings.gateway.alias:
        if alias.keys is None or (before is not None and alias.name not in before):
            continue
        held = before[alias.name] if before else None
        try:
            found[alias.name] = read_keys(alias.keys, env.now, env.randomness, held)
        except UsageError as error:
            raise UsageError(f"gateway.alias {alias.name}: {error}") from None
    return found


def _vocabulary(settings: GatewaySettings, section: PurposesSection) -> Vocabulary:
    """Return the purposes there are; raises `UsageError` where the settings name others."""
    vocabulary = vocabulary_of(section)
    check_vocabulary(vocabulary, settings.named_purposes())
    return vocabulary


def _purposes(settings: GatewaySettings, env: Environment, ways: NetworkWays) -> Purposes | None:
    """Return what decides by purposes, `None` where messages are for anything; raises `UsageError`."""
    section = settings.purposes
    if section is None:
        return None
    return Purposes(section, settings.speakers(), _vocabulary(settings, section), env.now, ways)


class _Gateway(ProcessFrame[GatewaySettings]):
    """One gateway process."""

    def __init__(self, settings: GatewaySettings) -> None:
        counters = GatewayCounters(self._counted_beside)
        super().__init__(settings, GATEWAY, system_environment(), counters)
        self._users = GatewayUsers(settings, Passwords(self._env.compute, self._env.randomness))
        self._listeners = Listeners(
            settings.listeners(), settings.socket_group, self._serve, counters, self._env
        )
        self._announcer = None if settings.announce is None else self._announcing(settings.announce)
        self._ways = _ways(settings, self._env)
        self._purposes = _purposes(settings, self._env, self._ways)
        self._network: GatewayNetwork | None = None
        if settings.daemon.socket is not None:
            self._network = GatewayNetwork(settings, self._ways, self._env, counters, self._purposes)
        self._state: BrokerState | None = None
        self._server: Server | None = None
        self._served = 0
        self._ready = self._stops = False

    async def _work(self, store: SqliteStore, nursery: trio.Nursery) -> None:
        """Serve clients until the nursery is cancelled; they hear a goodbye then."""
        # Not cancelled with all else: what is still to be said goes first.
        with trio.CancelScope(shield=True) as serving:
            nursery.start_soon(self._end, serving)
            async with trio.open_nursery() as living:
                living.start_soon(store.run)
                await migrate(store, GATEWAY.migrations.load())
                await self._open(store, living)
                self._ready = True
                log.info("running")

    async def _open(self, store: SqliteStore, nursery: trio.Nursery) -> None:
        settings = self._settings
        largest = None if settings.maximum_packet == LARGEST_PACKET else settings.maximum_packet
        broker = MqttSettings(
            version("hushcast"),
            largest,
            settings.limits.as_protocol(),
            history=settings.history.topics,
            history_seconds=settings.history.hours * 3_600,
        )
        beyond = self._network or DaemonlessNetwork()
        self._state = await open_broker(
            store, self._env, beyond, broker, self._purposes, permissions_of=self._users.permissions
        )
        self._server = Server(self._state, self._authenticate, largest)
        nursery.start_soon(self._state.run)
        await nursery.start(tell_findings, settings.doctors_socket(), self._examine)
        answer = OperatorAnswers(self._state).answer
        await nursery.start(answer_questions, settings.operators_socket(), answer, "the operator's socket")
        if self._purposes is not None:
            nursery.start_soon(ReservationRemover(settings.state_path(), self._purposes, self._state).run)
        if self._network is not None:
            nursery.start_soon(self._network.run, self._state, store)
        await self._serve_metrics(nursery, GATEWAY_GAUGES)
        await nursery.start(self._listeners.run)
        if self._announcer is not None:
            nursery.start_soon(self._announcer.run)

    def _announcing(self, address: str) -> Announcer:
        return Announcer(announcements(self._settings.listeners(), address, self._env.randomness))

    async def _end(self, serving: trio.CancelScope) -> None:
        try:
            await trio.sleep_forever()
        finally:
            self._stops = True
            with trio.CancelScope(shield=True), trio.move_on_after(GOODBYE_WITHIN):
                if self._state is not None:
                    self._state.broker.shut_down()
                    while self._served:  # noqa: ASYNC110 - clients leave one by one, and once
                        await trio.sleep(0.02)
            serving.cancel()

    async def _serve(self, stream: trio.abc.Stream, peer: ClientPeer) -> None:
        if self._server is None or self._stops:
            return
        self._served += 1
        try:
            await self._server.serve(stream, peer)
        finally:
            self._served -= 1

    async def _authenticate(self, connect: Connect, peer: ClientPeer) -> Permissions | Reason:
        verdict = await self._users.authenticate(connect, peer)
        if isinstance(verdict, Reason):
            self._counters.add("clients_refused")
        elif self._purposes is not None:
            self._purposes.connected(verdict, connect)
        return verdict

    def apply(self, fresh: GatewaySettings) -> None:
        """Take what a running gateway can take of a configuration; raises `UsageError`, then of nothing."""
        keyed = {} if self._network is None else _keys(fresh, self._env, self._ways.keyed)
        section = fresh.purposes or self._settings.purposes
        vocabulary = None if section is None else _vocabulary(fresh, section)
        if self._purposes is not None and section is not None and vocabulary is not None:
            configured(section, vocabulary)
        self._listeners.read_certificates()  # the last that may fail
        if self._purposes is not None and section is not None and vocabulary is not None:
            self._purposes.replace(section, fresh.speakers(), vocabulary)
        self._users.replace(fresh)
        if self._network is not None and keyed:
            self._network.replace_keys(keyed)

    def health(self) -> Health:
        """Tell how far the gateway is."""
        if not self._ready or self._state is None:
            return Health(False, "starting")
        clients = counted(self._state.broker.connected, "client")
        away = self._network is not None and not self._network.is_there
        return Health(
            True, f"working, {clients} connected" + (", the daemon does not answer" if away else "")
        )

    async def _examine(self) -> list[Finding]:
        """Tell the doctor what shows in a gateway that runs alone."""
        await trio.lowlevel.checkpoint()
        assert self._state is not None, "the socket is there once the state is"
        return refusals_found(self._state.broker.refusals, self._env.now())

    def _counted_beside(self) -> dict[str, int]:
        if self._state is None or self._server is None:
            return {}
        counts = {MQTT + name: count for name, count in self._state.broker.counts.items()}
        if self._purposes is not None:
            counts |= self._purposes.counters.as_dict()
        return counts | {"internal_errors": self._server.internal_errors}

    def _readings(self) -> dict[str, float]:
        found = {"ready": float(self._ready), "network_topics": 0.0, "network_held": 0.0}
        found["network_ready"] = 0.0
        if self._purposes is not None:
            found |= {"purposes_reserved": self._purposes.reserved, "purposes_paused": self._purposes.resting}
        if self._network is not None:
            found |= {"network_topics": self._network.topics_read, "network_held": self._network.held}
            found["network_ready"] = self._network.is_there
        if self._state is not None:
            broker = self._state.broker
            found |= {
                "mqtt_clients": broker.connected,
                "mqtt_sessions": broker.sessions,
                "mqtt_subscriptions": broker.subscriptions,
                "mqtt_retained": broker.retained,
                "mqtt_delayed": broker.delayed.count,
                "mqtt_history": broker.kept,
                "mqtt_held_bytes": broker.held_bytes,
            }
        return found
