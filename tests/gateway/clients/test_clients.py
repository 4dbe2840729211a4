"""Clients that others wrote, each through one scenario, against a gateway that is killed on the way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from client_kinds import KINDS, Kind, end_helpers, require
from gateway_process import GatewayProcess
from mqtt_client import Message, MqttClient

pytestmark = pytest.mark.processes

each_kind = pytest.mark.parametrize("kind", KINDS, ids=str)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    gateway = GatewayProcess(tmp_path_factory.mktemp("gateway"))
    gateway.start()
    yield gateway
    end_helpers()
    gateway.kill()
    assert "Traceback" not in gateway.log


@contextmanager
def connected(kind: Kind, gateway: GatewayProcess, name: str, **options: object) -> Iterator[MqttClient]:
    client = kind.client(gateway.server, f"{kind} {name}", **options)
    client.connect()
    try:
        yield client
    finally:
        client.close()


@each_kind
def test_messages_come_to_filters_with_wildcards_at_their_qos(gateway: GatewayProcess, kind: Kind) -> None:
    require(kind)
    with (
        connected(kind, gateway, "one") as one,
        connected(kind, gateway, "all") as all_,
        connected(kind, gateway, "writer") as writer,
    ):
        assert one.subscribe(f"live/{kind}/+/temp", 2) == 2
        assert all_.subscribe(f"live/{kind}/#", 1) == 1
        sent = [
            Message(f"live/{kind}/{room}", f"{room} at {qos}", qos)
            for qos in (0, 1, 2)
            for room in ("kitchen/temp", "kitchen/oven/temp", "hall/temp")
        ]
        for message in sent:
            writer.publish(message.topic, message.payload, message.qos)
        wanted = [message for message in sent if "oven" not in message.topic]
        assert {one.message() for _ in wanted} == set(wanted)
        lowered = {Message(sent.topic, sent.payload, min(sent.qos, 1)) for sent in sent}
        assert {all_.message() for _ in sent} == lowered


@each_kind
def test_a_retained_message_waits_for_who_comes_late_until_it_is_cleared(
    gateway: GatewayProcess, kind: Kind
) -> None:
    require(kind)
    topic, other = f"kept/{kind}/state", f"kept/{kind}/other"
    with connected(kind, gateway, "writer") as writer:
        writer.publish(topic, "an old one", 1, retain=True)
        writer.publish(topic, "on", 1, retain=True)
        with connected(kind, gateway, "late") as late:
            late.subscribe(f"kept/{kind}/#", 1)
            assert late.message() == Message(topic, "on", 1, retain=True)
            writer.publish(topic, "", 1, retain=True)
            assert late.message() == Message(topic, "", 1), "fresh, and so not marked as retained"
        with connected(kind, gateway, "later") as later:
            later.subscribe(f"kept/{kind}/#", 1)
            writer.publish(other, "the first", 1)
            assert later.message() == Message(other, "the first", 1)


@each_kind
def test_a_will_tells_of_an_end_without_a_word_and_of_no_other(gateway: GatewayProcess, kind: Kind) -> None:
    require(kind)
    with connected(kind, gateway, "watcher") as watcher:
        watcher.subscribe(f"will/{kind}/#", 1)
        for name, end in (("polite", MqttClient.close), ("mortal", MqttClient.die)):
            will = Message(f"will/{kind}/{name}", "gone", 1, retain=True)
            client = kind.client(gateway.server, f"{kind} {name}", will=will)
            client.connect()
            client.subscribe(f"nothing/{kind}", 0)  # mosquitto_sub connects with this only
            getattr(client, end.__name__)()
        if str(kind) == "mosquitto-5":  # asks for its will with its goodbye (0x04), where a signal ends it
            assert watcher.message() == Message(f"will/{kind}/polite", "gone", 1)
        assert watcher.message() == Message(f"will/{kind}/mortal", "gone", 1)


def test_nothing_acknowledged_is_lost_by_a_kill(gateway: GatewayProcess) -> None:
    """Sessions of all kinds at once: one kill for all."""
    kinds = [kind for kind in KINDS if kind.is_there()]
    for kind in kinds:
        with connected(kind, gateway, "away", lasting=True) as away:
            assert away.subscribe(f"session/{kind}/#", 2) == 2
        with connected(kind, gateway, "writer") as writer:
            for qos in (1, 2):
                writer.publish(f"session/{kind}/a", f"before, at {qos}", qos)
            writer.publish(f"kept-session/{kind}", "kept", 1, retain=True)
    gateway.kill()
    gateway.start()
    for kind in kinds:
        with connected(kind, gateway, "writer") as writer:
            for qos in (1, 2):
                writer.publish(f"session/{kind}/a", f"after, at {qos}", qos)
        back = kind.client(gateway.server, f"{kind} away", lasting=True)
        if (present := back.connect()) is None:
            back.subscribe(f"session/{kind}/#", 2)  # it does not tell, and subscribes always
        else:
            assert present, kind
        try:
            found = [back.message() for _ in range(4)]
        finally:
            back.close()
        for qos in (1, 2):  # in order at each: a client shows a message of QoS 2 when it is released
            payloads = [one.payload for one in found if one.qos == qos]
            assert payloads == [f"before, at {qos}", f"after, at {qos}"], kind
        with connected(kind, gateway, "late") as late:
            late.subscribe(f"kept-session/{kind}", 1)
            assert late.message() == Message(f"kept-session/{kind}", "kept", 1, retain=True), kind
