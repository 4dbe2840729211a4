"""A gateway as it is run, and paho as others use it: over TCP, TLS, WebSockets and a Unix socket."""

from __future__ import annotations

import os
import queue
import resource
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
import pytest
import trio
from made_certificates import Certificates
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from ports import free_port
from purpose_files import ISSUER, write_files

from hushcast import new_link
from hushcast_gateway.doctor import GatewayDoctor
from hushcast_gateway.passwords import hashed
from hushcast_gateway.settings import GatewaySettings
from hushcast_runtime.processes.config import parse_settings

pytestmark = pytest.mark.processes

WITHIN = 20.0  # seconds; measured below two, and other work may share the machine
PASSWORD = "a-password-to-look-for"
TOPIC, PAYLOAD = "home/a-topic-to-look-for", b"a payload to look for"


class Gateway:
    """A gateway process, with a listener of each kind."""

    def __init__(self, directory: Path, certificates: Certificates) -> None:
        self.file, self.socket, self._log = (directory / name for name in ("g.toml", "mqtt.sock", "log"))
        self.manager = directory / "systemd.sock"
        self._certificates = certificates
        self.ports = {kind: free_port() for kind in ("tcp", "tls", "ws", "wss", "metrics")}
        pem, key = certificates.path("gateway.pem"), certificates.path("gateway.key")
        text = f'state = "{directory}/state"\nmetrics = "127.0.0.1:{self.ports["metrics"]}"\n'
        text += f'[[listen]]\nkind = "unix"\npath = "{self.socket}"\n'
        for kind in ("tcp", "tls", "ws", "wss"):
            text += f'[[listen]]\nkind = "{kind}"\nport = {self.ports[kind]}\n'
            if kind in ("tls", "wss"):
                text += f'certificate = "{pem}"\nkey = "{key}"\n'
        self.text = text + f'[users.alice]\npassword = "{hashed(PASSWORD.encode())}"\n'
        self.text += 'publish = ["home/#"]\nsubscribe = ["home/#"]\n'
        self.text += f'[users.machine]\nuid = [{os.getuid()}]\nsubscribe = ["home/#"]\n'
        self.text += '[log]\nlevel = "debug"\n'

    def start(self) -> None:
        """Start it and wait until it serves."""
        self.file.write_text(self.text)
        command = [sys.executable, "-m", "hushcast_cli.start", "run", "gateway", "--config", str(self.file)]
        environment = os.environ | {"NOTIFY_SOCKET": str(self.manager)}
        with self._log.open("ab") as log:
            started = self.log.count("running")
            self.process = subprocess.Popen(command, stderr=log, stdout=log, env=environment)
        try:
            wait_until(lambda: self.log.count("running") > started or self.process.poll() is not None)
            assert self.process.returncode is None, self.log
        except BaseException:
            self.stop()
            raise

    @property
    def log(self) -> str:
        return self._log.read_text()

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()

    def client(self, transport: str, name: str | None = "alice", password: str = PASSWORD) -> Client:
        """Connect over a transport."""
        client = Client(transport)
        if name is not None:
            client.paho.username_pw_set(name, password)
        if transport in ("tls", "wss"):
            client.paho.tls_set(ca_certs=self._certificates.path("ca.pem"))
        if transport == "unix":
            client.paho.connect(str(self.socket))
        else:
            client.paho.connect("127.0.0.1", self.ports[transport])
        client.paho.loop_start()
        client.code = client.codes.get(timeout=WITHIN)
        return client


class Client:
    """A client of paho, whose callbacks become queues."""

    def __init__(self, transport: str) -> None:
        kind = {"ws": "websockets", "wss": "websockets", "unix": "unix"}.get(transport, "tcp")
        self.paho = paho.Client(
            CallbackAPIVersion.VERSION2, protocol=paho.MQTTv5, transport=kind, reconnect_on_failure=False
        )
        self.codes: queue.Queue[int] = queue.Queue()
        self.messages: queue.Queue[tuple[str, bytes]] = queue.Queue()
        self.granted: queue.Queue[int] = queue.Queue()
        self.published: queue.Queue[int] = queue.Queue()
        self.ended: queue.Queue[int] = queue.Queue()
        self.code = -1
        self.paho.on_connect = lambda client, data, flags, code, properties: self.codes.put(code.value)
        self.paho.on_message = lambda client, data, message: self.messages.put(
            (message.topic, message.payload)
        )
        self.paho.on_subscribe = lambda client, data, number, codes, properties: self.granted.put(
            codes[0].value
        )
        self.paho.on_publish = lambda client, data, number, code, properties: self.published.put(code.value)
        self.paho.on_disconnect = lambda client, data, flags, code, properties: self.ended.put(code.value)

    def subscribe(self, wanted: str) -> int:
        self.paho.subscribe(wanted, 1)
        return self.granted.get(timeout=WITHIN)

    def publish(self, topic: str, payload: bytes) -> int:
        self.paho.publish(topic, payload, 1)
        return self.published.get(timeout=WITHIN)

    def close(self) -> None:
        self.paho.disconnect()
        self.paho.loop_stop()
        self.paho._reset_sockets()  # else it is left to the collector when a connection broke


def wait_until(condition: Any) -> None:
    until = time.monotonic() + WITHIN
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_the_service_manager_hears_when_it_is_ready(certificates: Certificates, tmp_path: Path) -> None:
    gateway = Gateway(tmp_path, certificates)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(gateway.manager))
        manager.settimeout(WITHIN)
        gateway.start()
        try:
            told = b""
            while b"READY=1" not in told:
                told = manager.recv(1024)
            assert b"STATUS=working, 0 clients connected" in told
            gateway.process.terminate()
            while b"STOPPING=1" not in told:
                told = manager.recv(1024)
        finally:
            gateway.stop()


def test_clients_go_on_when_no_more_files_can_be_opened(certificates: Certificates, tmp_path: Path) -> None:
    gateway = Gateway(tmp_path, certificates)
    gateway.start()
    try:
        resource.prlimit(gateway.process.pid, resource.RLIMIT_NOFILE, (40, 40))
        client = gateway.client("tcp")
        flood = [socket.create_connection(("127.0.0.1", gateway.ports["tcp"])) for _ in range(60)]
        wait_until(lambda: "too many files are open" in gateway.log)
        assert client.subscribe("home/#") == 1
        for connection in flood:
            connection.close()
        other = gateway.client("tcp")
        assert other.code == 0
        assert other.publish("home/x", b"x") == 0
        assert client.messages.get(timeout=WITHIN) == ("home/x", b"x")
        for one in (client, other):
            one.close()
        assert "Traceback" not in gateway.log
        assert gateway.log.count("too many files are open") == 1
    finally:
        gateway.stop()


@pytest.fixture(scope="module")
def gateway(certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    gateway = Gateway(tmp_path_factory.mktemp("gateway"), certificates)
    gateway.start()
    yield gateway
    gateway.stop()


@pytest.mark.parametrize("transport", ["tcp", "tls", "ws", "wss", "unix"])
def test_a_message_arrives_over_each_transport(gateway: Gateway, transport: str) -> None:
    reader, writer = gateway.client(transport), gateway.client("tcp")
    try:
        assert (reader.code, writer.code) == (0, 0)
        assert reader.subscribe("home/#") == 1
        large = os.urandom(200_000)
        for payload in (PAYLOAD, b"", large):
            assert writer.publish(TOPIC, payload) == 0
            assert reader.messages.get(timeout=WITHIN) == (TOPIC, payload)
        assert reader.publish(TOPIC, large) == 0, "and back"
        assert reader.messages.get(timeout=WITHIN) == (TOPIC, large)
    finally:
        reader.close()
        writer.close()


def test_who_is_let_in_and_what_each_may_do(gateway: Gateway) -> None:
    for transport, name, password, code in (
        ("tcp", "alice", "wrong", 0x86),
        ("ws", "eve", PASSWORD, 0x86),
        ("tls", None, "", 0x87),
        ("unix", None, "", 0),
        ("unix", "alice", "wrong", 0x86),
    ):
        client = gateway.client(transport, name, password)
        assert client.code == code, (transport, name)
        client.close()
    machine = gateway.client("unix", None)
    assert machine.subscribe("home/+/x") == 1
    assert machine.subscribe("other") == 0x87
    assert machine.publish("home/x", b"x") == 0x87
    machine.close()
    settings = parse_settings(gateway.file.read_bytes(), "gateway.toml", GatewaySettings)
    found = {one.check: one for one in trio.run(GatewayDoctor(settings, time.time()).examine)}
    assert found["refused subscriptions"].found.startswith(
        "1 subscription refused in 10 minutes: 1 because their user"
    )
    wait_until(lambda: "subscriptions were refused" in gateway.log)


def test_users_can_be_changed_while_it_runs(gateway: Gateway) -> None:
    alice = gateway.client("tcp")
    assert alice.publish("home/x", b"x") == 0
    text = gateway.text.replace('publish = ["home/#"]', 'publish = ["garden/#"]')
    gateway.file.write_text(text)
    before = gateway.log.count("configuration read again")
    gateway.process.send_signal(signal.SIGHUP)
    wait_until(lambda: gateway.log.count("configuration read again") > before)
    assert alice.publish("home/x", b"x") == 0x87
    assert alice.publish("garden/x", b"x") == 0
    alice.close()
    gateway.file.write_text(text.replace("users.alice", "users.al/#"))
    gateway.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "the configuration cannot be used" in gateway.log)
    gateway.file.write_text(gateway.text)
    before = gateway.log.count("configuration read again")
    gateway.process.send_signal(signal.SIGHUP)
    wait_until(lambda: gateway.log.count("configuration read again") > before)
    assert "restart it" not in gateway.log


def test_grants_and_rules_can_be_changed_while_it_runs(certificates: Certificates, tmp_path: Path) -> None:
    files = write_files(tmp_path / "k", ["operations", "marketing"])
    link = tmp_path / "cars.link"
    link.touch(mode=0o600)
    link.write_text(new_link("cars", private=True))
    (tmp_path / "purposes").write_text("operations\nmarketing\n")
    gateway = Gateway(tmp_path, certificates)
    gateway.text = f"""{gateway.text}
[purposes]
vocabulary = "{tmp_path}/purposes"
[daemon]
socket = "{tmp_path}/no-daemon"
[[gateway.alias]]
name = "cars"
link_file = "{link}"
[gateway.alias.keys]
vocabulary_file = "{files.vocabulary}"
issuer = "{ISSUER.public().hex()}"
reader_key_file = "{files.reader_key}"
""".replace('subscribe = ["home/#"]', 'subscribe = ["home/#", "hush/cars/#"]\npurpose = "operations"')
    granted = f'grant_files = ["{files.grants[0]}"]\n'

    def reload(text: str, told: str = "configuration read again") -> None:
        before = gateway.log.count(told)
        gateway.file.write_text(text)
        gateway.process.send_signal(signal.SIGHUP)
        wait_until(lambda: gateway.log.count(told) > before)

    gateway.start()
    try:
        alice = gateway.client("tcp")
        assert alice.subscribe("hush/cars/#") == 0x87, "there is no grant"
        reload(gateway.text + granted)
        assert alice.subscribe("hush/cars/#") == 1
        good = files.grants[0].read_bytes()
        files.grants[0].write_bytes(b"\0")
        reload(gateway.text + granted, "the configuration cannot be used")
        assert "gateway.alias cars" in gateway.log
        assert alice.subscribe("hush/cars/a") == 1, "the one before is still held"
        files.grants[0].unlink()
        reload(gateway.text + granted)
        assert alice.subscribe("hush/cars/b") == 0x87, "the grant was taken away"
        files.grants[0].write_bytes(good)
        # A reservation counts from now on: nobody here reads for marketing, so nobody gets what it reserves.
        assert alice.subscribe("home/#") == 1
        reserved = '[[purposes.reservation]]\nfilter = "home/x"\naip = ["marketing"]\n'
        reload(gateway.text + granted + reserved)
        for topic, payload in (("home/x", b"reserved"), ("home/y", b"not reserved")):
            assert alice.publish(topic, payload) == 0
        assert alice.messages.get(timeout=WITHIN) == ("home/y", b"not reserved")
        assert "restart it" not in gateway.log
        reload(gateway.text.replace("[purposes]", '[purposes]\nmode = "subscribe"'), "restart it")
        alice.close()
    finally:
        gateway.stop()


def test_it_is_ready_and_says_so_to_an_engine(gateway: Gateway) -> None:
    url = f"http://127.0.0.1:{gateway.ports['metrics']}/readyz"
    with urllib.request.urlopen(url, timeout=WITHIN) as answer:
        assert (answer.status, answer.read()[:8]) == (200, b"working,")
    asked = [sys.executable, "-m", "hushcast_cli.start", "healthcheck", "--config", str(gateway.file)]
    subprocess.run(asked, check=True, capture_output=True, timeout=WITHIN)


def test_metrics_tell_of_clients_and_name_none(gateway: Gateway) -> None:
    client = gateway.client("tcp")
    with urllib.request.urlopen(
        f"http://127.0.0.1:{gateway.ports['metrics']}/metrics", timeout=WITHIN
    ) as answer:
        told = answer.read().decode()
    client.close()
    values = dict(line.rsplit(" ", 1) for line in told.splitlines() if not line.startswith("#"))
    assert float(values["hushcast_ready"]) == 1
    assert float(values["hushcast_mqtt_clients"]) >= 1
    assert float(values["hushcast_mqtt_messages_received_total"]) >= 1
    assert "alice" not in told
    assert "home" not in told


def test_a_person_who_waits_silently_does_not_keep_it_from_stopping(gateway: Gateway) -> None:
    """Last of this gateway: clients of version 5 hear that it stops, and it ends at once."""
    clients = [gateway.client(transport) for transport in ("tcp", "tls", "ws", "wss", "unix")]
    silent = socket.create_connection(("127.0.0.1", gateway.ports["tcp"]))
    will = gateway.client("tcp")
    gateway.process.terminate()
    assert gateway.process.wait(timeout=WITHIN) == 0
    assert [client.ended.get(timeout=WITHIN) for client in [*clients, will]] == [0x8B] * 6
    for client in [*clients, will]:
        client.close()
    silent.close()
    assert "stopping" in gateway.log
    for secret in (PASSWORD, TOPIC, PAYLOAD.decode(), "alice", "a stream's handler failed", "Traceback"):
        assert secret not in gateway.log
    assert not gateway.socket.exists()


@pytest.mark.first
def test_what_was_promised_is_there_after_a_kill(gateway: Gateway) -> None:
    """A session of a client that is away, and a retained message, by one that was acknowledged."""
    gateway.stop()  # the test before this one may have done so
    gateway.start()
    reader = Client("tcp")
    reader.paho.username_pw_set("alice", PASSWORD)
    lasting = Properties(PacketTypes.CONNECT)
    lasting.SessionExpiryInterval = 3_600
    reader.paho._client_id = b"reader"
    reader.paho.connect("127.0.0.1", gateway.ports["tcp"], properties=lasting, clean_start=True)
    reader.paho.loop_start()
    assert reader.codes.get(timeout=WITHIN) == 0
    assert reader.subscribe("home/kept") == 1
    reader.close()
    writer = gateway.client("tcp")
    assert writer.publish("home/kept", b"kept") == 0
    gateway.stop()
    gateway.start()
    again = Client("tcp")
    again.paho.username_pw_set("alice", PASSWORD)
    again.paho._client_id = b"reader"
    again.paho.connect("127.0.0.1", gateway.ports["tcp"], properties=lasting, clean_start=False)
    again.paho.loop_start()
    assert again.messages.get(timeout=WITHIN) == ("home/kept", b"kept")
    again.close()
    writer.close()
