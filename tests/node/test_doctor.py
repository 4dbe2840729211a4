"""The doctor tells what is well from what is not, and says what to do about the latter."""

from __future__ import annotations

import math
import resource
import shutil
from collections import namedtuple
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
from hosted_network import subscribed
from kept_network import kept_network
from small_network import BEGIN, EPOCH_SECONDS, Node, SmallNetwork, small_network, until

from hushcast.control_messages import Finding
from hushcast_node.doctor import NodeDoctor
from hushcast_node.overlay_doctor import FILES_NEEDED
from hushcast_node.settings import JoinedNetworkSection, NodeSettings, PresenceSection
from hushcast_protocol.base.addresses import onion_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.overlay.profile import Root
from hushcast_protocol.overlay.tree_rule import TreeRule
from hushcast_runtime.processes import testnet_section
from hushcast_runtime.processes.examinations import LITTLE_ROOM, NO_ROOM, REACHED_WITHIN
from hushcast_runtime.tor.socks_transport import SocksTransport
from hushcast_runtime.tor.tor_watch import TorState
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.endpoints import Endpoint

WELL = TorState(100, "Done", True)


class FakeTor:
    """What a tor says of itself."""

    def __init__(self, now: float, state: TorState = WELL, version: str = "0.4.8.16 (git-x)") -> None:
        self.state = state
        self.version = version
        self.after, self.until = now - 60, now + 60

    async def getinfo(self, key: str) -> str:
        if not self.state.connected:
            raise TransportError("tor is not connected")
        if key == "version":
            return self.version
        moment = {"consensus/valid-after": self.after, "consensus/valid-until": self.until}[key]
        return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%S")


def settings(
    state: Path, role: str, transport: str = "tor", testnet: testnet_section.TestnetSection | None = None
) -> NodeSettings:
    seed = Seed(bytes(32))
    section = JoinedNetworkSection(
        name="small", directory=onion_address(seed.public()), directory_key=seed.public().hex()
    )
    return NodeSettings(state=str(state), role=role, transport=transport, network=section, testnet=testnet)  # type: ignore[arg-type]


def doctor_of(net: SmallNetwork, node: Node, state: Path, tor: FakeTor | None = None) -> NodeDoctor:
    role = "relay" if node.identity else "client"
    doctor = NodeDoctor(settings(state, role), net.env)
    doctor.daemon = node.daemon
    doctor.tor = tor or FakeTor(net.now)  # type: ignore[assignment]
    return doctor


async def found(doctor: NodeDoctor) -> dict[str, Finding]:
    findings = await doctor.examine()
    assert all(finding.advice or finding.verdict == "good" for finding in findings), "what is to be done?"
    named = {finding.check: finding for finding in findings}
    assert len(named) == len(findings)
    del named["core dumps"]  # pytest may be dumped
    return named


def verdicts(findings: dict[str, Finding]) -> dict[str, str]:
    return {name: finding.verdict for name, finding in findings.items() if finding.verdict != "good"}


async def test_a_network_that_is_well(tmp_path: Path) -> None:
    async with small_network(relays=3, clients=1) as net:
        relay = await found(doctor_of(net, net.relays[0], tmp_path))
        assert verdicts(relay) == {}
        assert relay["roster"].found == "fresh, 3 relays"
        assert relay["onion service"].found == "reached from here"
        await net.clients[0].listen()
        client = await found(doctor_of(net, net.clients[0], tmp_path))
        assert verdicts(client) == {}
        assert client["subscriptions"].found == "1 of 1 ready"
        assert {"descriptor", "onion service"}.isdisjoint(client)


async def test_a_relay_that_subscribes_is_warned_of(tmp_path: Path) -> None:
    """Not where all who subscribe are relays, and not on a testnet."""
    async with small_network(relays=3, clients=0) as net:
        await net.relays[0].listen()
        doctor = doctor_of(net, net.relays[0], tmp_path)
        warned = await found(doctor)
        assert verdicts(warned) == {"presence": "warning"}
        assert "1 subscription:" in warned["presence"].found
        network = msgspec.structs.replace(doctor._settings.network, profile="paper")
        doctor._settings = msgspec.structs.replace(doctor._settings, network=network)
        assert verdicts(await found(doctor)) == {}


@pytest.mark.slow
async def test_a_relay_that_subscribes_without_trees_is_warned_of_only_where_it_is_set_to_have_some(
    tmp_path: Path,
) -> None:
    async with kept_network(relays=4, clients=0, root=Root.HOST) as net:
        reader = net.relays[0]
        await subscribed(reader)
        doctor = doctor_of(net, reader, tmp_path)
        assert "presence" not in await found(doctor)
        reader.trees = TreeRule.ALWAYS
        await reader.restart()
        doctor.daemon = reader.daemon
        always = PresenceSection(trees="always")
        doctor._settings = msgspec.structs.replace(doctor._settings, presence=always)
        warned = (await found(doctor))["presence"]
        assert warned.verdict == "warning"
        assert "take presence.trees out" in warned.advice


async def test_before_anything_is_up(tmp_path: Path) -> None:
    doctor = NodeDoctor(settings(tmp_path, "relay"), SmallNetwork.environment(_NoNetwork(), "x"))
    expected = {
        "tor": "bad",
        "clock": "warning",
        "roster": "bad",
        "descriptor": "bad",
        "onion service": "bad",
    }
    assert verdicts(await found(doctor)) == expected


class _NoNetwork(SmallNetwork):
    def __init__(self) -> None:
        self.seed, self.epoch, self.skews, self.look_every = 1, EPOCH_SECONDS, {}, math.inf
        self._begin = BEGIN


@pytest.mark.parametrize(
    ("tor", "told"),
    [
        (TorState(100, "control connection lost", False), "not up"),
        (TorState(45, "Loading", True), "45 %"),
    ],
)
async def test_tor_that_is_not_there_yet(tmp_path: Path, tor: TorState, told: str) -> None:
    async with small_network(relays=1, clients=0) as net:
        findings = await found(doctor_of(net, net.relays[0], tmp_path, FakeTor(net.now, tor)))
        assert findings["tor"].verdict == "bad"
        assert told in findings["tor"].found


async def test_tor_that_closes_no_circuits(tmp_path: Path) -> None:
    async with small_network(relays=1, clients=0) as net:
        tor = FakeTor(net.now, TorState(100, "Done", connected=True, circuits_apart=False))
        findings = await found(doctor_of(net, net.relays[0], tmp_path, tor))
        assert findings["tor"].verdict == "warning"
        assert "CLOSECIRCUIT" in findings["tor"].advice


@pytest.mark.parametrize(
    ("state", "verdict", "told"),
    [
        (TorState(None, "tor does not answer at its endpoint"), "bad", "does not answer"),
        (TorState(None, "Done", problem="take it out"), "bad", "does not isolate"),
        (TorState(None, "nothing was reached yet", connected=True), "warning", "nothing was reached"),
        (TorState(None, "Done", connected=True, circuits=True), "warning", "circuits end together"),
    ],
)
async def test_a_socks_port_alone(tmp_path: Path, state: TorState, verdict: str, told: str) -> None:
    async with small_network(relays=1, clients=1) as net:
        doctor = doctor_of(net, net.clients[0], tmp_path)
        doctor.tor = SocksTransport(Endpoint(host="127.0.0.1", port=9), 1.0, net.env.randomness)
        doctor.tor._state = state
        findings = await found(doctor)
        assert findings["tor"].verdict == verdict
        assert told in findings["tor"].found
        assert "clock" not in findings, "it says nothing of the time"


@pytest.mark.parametrize(
    ("version", "verdict"), [("0.4.7.16", "bad"), ("0.4.8.1-alpha", "good"), ("0.5.0.1", "good"), ("", "bad")]
)
async def test_versions_of_tor(tmp_path: Path, version: str, verdict: str) -> None:
    async with small_network(relays=1, clients=0) as net:
        findings = await found(doctor_of(net, net.relays[0], tmp_path, FakeTor(net.now, version=version)))
        assert findings["tor"].verdict == verdict


@pytest.mark.parametrize(("ahead", "told"), [(-120, "behind"), (120, "ahead of")])
async def test_a_wrong_clock(tmp_path: Path, ahead: float, told: str) -> None:
    async with small_network(relays=1, clients=0) as net:
        tor = FakeTor(net.now - ahead)
        findings = await found(doctor_of(net, net.relays[0], tmp_path, tor))
        assert findings["clock"].verdict == "bad"
        assert findings["clock"].found.startswith(told)


async def test_a_directory_that_is_away(tmp_path: Path) -> None:
    async with small_network(relays=3, clients=0) as net:
        await net.directory.stop()
        await trio.sleep(3 * EPOCH_SECONDS)
        findings = await found(doctor_of(net, net.relays[0], tmp_path))
        assert findings["roster"].verdict == "bad"
        assert " old, " in findings["roster"].found


@pytest.mark.slow
async def test_a_network_whose_relays_are_dead(tmp_path: Path) -> None:
    in_testnet = testnet_section.TestnetSection(name="client-1", traces=str(tmp_path), began=0.0)
    async with small_network(relays=3, clients=1, probes_an_epoch=60.0) as net:
        client = net.clients[0]
        await client.listen()
        for relay in net.relays:
            await relay.stop()
        await until(lambda: not client.daemon.is_connected, 3 * EPOCH_SECONDS, "it finds out")
        for testnet, where in ((None, "look at tor"), (in_testnet, "`hushcast testnet status` shows")):
            doctor = NodeDoctor(settings(tmp_path, "client", "tcp", testnet), net.env)
            doctor.daemon = client.daemon
            findings = {finding.check: finding for finding in await doctor.examine()}
            assert where in findings["relays"].advice
            assert findings["subscriptions"].found == "0 of 1 ready"
            assert "once it answers" in findings["subscriptions"].advice


async def test_a_service_that_cannot_be_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with small_network(relays=3, clients=0) as net:
        doctor = doctor_of(net, net.relays[0], tmp_path)
        began = net.now

        async def never(*arguments: Any) -> None:
            await trio.sleep_forever()

        monkeypatch.setattr(net.relays[0].daemon.transport, "connect", never)
        assert verdicts(await found(doctor)) == {"onion service": "bad"}
        assert net.now - began < REACHED_WITHIN + 5


@pytest.mark.parametrize(
    ("free", "verdict"),
    [(NO_ROOM - 1, "bad"), (NO_ROOM, "warning"), (LITTLE_ROOM - 1, "warning"), (LITTLE_ROOM, "good")],
)
async def test_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, verdict: str) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(0, 0, free))
    doctor = NodeDoctor(settings(tmp_path, "client", "tcp"), SmallNetwork.environment(_NoNetwork(), "x"))
    findings = await found(doctor)
    assert findings["disk"].verdict == verdict
    assert {"tor", "clock"}.isdisjoint(findings), "there is no Tor to look at"


@pytest.fixture
def _few_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES_NEEDED - 1, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("_few_files")
async def test_too_few_files(tmp_path: Path) -> None:
    doctor = NodeDoctor(settings(tmp_path, "client", "tcp"), SmallNetwork.environment(_NoNetwork(), "x"))
    assert (await found(doctor))["open files"].verdict == "bad"
