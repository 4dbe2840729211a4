"""Purposes by a client that others wrote, over a real socket: paho-mqtt, in both versions."""

from __future__ import annotations

import queue
from collections.abc import Callable

import paho.mqtt.client as paho
import pytest
import trio
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from purposes_house import USERS, house

from hushcast import UsageError
from hushcast.purposes.paho import PurposeClient

WITHIN = 20.0  # seconds; it takes a fraction of one
FLEET = USERS.replace(
    "[users.owner]", "[users.fleet]\nuid = [7]\npublish = []\nsubscribe = []\n[users.owner]"
)


class Fleet:
    """Calls of the published client program, as it makes them of paho."""

    def __init__(self, port: int, user: str, version: int, client_id: str = "", clean: bool = True) -> None:
        name = client_id or user
        more = {} if version == paho.MQTTv5 else {"clean_session": clean}
        self.paho = paho.Client(paho.CallbackAPIVersion.VERSION2, client_id=name, protocol=version, **more)
        self.paho.username_pw_set(user)
        self.version = version
        self.found: queue.Queue[bytes] = queue.Queue()
        self._told: queue.Queue[list[int]] = queue.Queue()
        connected: queue.Queue[bool] = queue.Queue()
        self.paho.on_message = lambda client, data, message: self.found.put(message.payload)
        self.paho.on_subscribe = lambda client, data, mid, codes, properties: self._told.put(
            [one.value for one in codes]
        )
        self.paho.on_connect = lambda *_: connected.put(True)
        given = None
        if version == paho.MQTTv5:
            given = Properties(PacketTypes.CONNECT)
            given.SessionExpiryInterval = 0 if clean else 100
            self.paho.connect("127.0.0.1", port, properties=given, clean_start=clean)
        else:
            self.paho.connect("127.0.0.1", port)
        self.paho.loop_start()
        connected.get(timeout=WITHIN)

    def reserve(self, topic: str, aip: tuple[str, ...] = (), pip: tuple[str, ...] = ()) -> None:
        spelled = topic.replace("#", "HASH").replace("+", "PLUS")
        self.send(f"!RESERVE/{spelled}{{{','.join(aip)}|{','.join(pip)}}}")

    def subscribe_with_purpose(self, topic: str, purpose: str, presub: bool = False) -> list[int]:
        spelled = topic.replace("#", "HASH").replace("+", "PLUS")
        if presub:
            name = self.paho._client_id.decode()
            self.send(f"!PBAC/PRESUB/{name}/{spelled}{{{purpose}}}")
            return self.subscribe(spelled)  # which is what the program does
        return self.subscribe(f"!AP/{spelled}{{{purpose}}}")

    def subscribe(self, topic: str) -> list[int]:
        self.paho.subscribe(topic, 1)
        return self._told.get(timeout=WITHIN)

    def send(self, topic: str, payload: bytes = b"") -> None:
        self.paho.publish(topic, payload, 1).wait_for_publish(WITHIN)

    def came(self, until: bytes) -> list[bytes]:
        """Return all that came before a payload."""
        found = []
        while (payload := self.found.get(timeout=WITHIN)) != until:
            found.append(payload)
        return found

    def leave(self) -> None:
        self.paho.disconnect()
        self.paho.loop_stop()
        # It closes its sockets when it is deleted, which a cycle of garbage would leave to chance.
        self.paho.on_message = self.paho.on_subscribe = self.paho.on_connect = None


async def at_a_gateway(work: Callable[[int], None]) -> None:
    async with house(users=FLEET) as place, trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, place.gateway.server.serve, 0)
        await trio.to_thread.run_sync(work, listeners[0].socket.getsockname()[1])
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("version", [paho.MQTTv311, paho.MQTTv5])
async def test_the_published_programs_calls(version: int) -> None:
    def work(port: int) -> None:
        car, billing, owner = (Fleet(port, name, version) for name in ("car", "billing", "owner"))
        car.reserve("cars/car/#", ("operations", "marketing"), ("marketing/individualized",))
        assert billing.subscribe_with_purpose("cars/#", "operations/billing") == [1]
        assert billing.subscribe_with_purpose("cars/#", "marketing") == [0x80 if version == 4 else 0x87]
        assert owner.subscribe_with_purpose("cars/+/position", "operations", presub=True) == [1]
        for client in (billing, owner):
            client.subscribe("end")
        car.send("cars/car/position", b"1")
        car.reserve("cars/car/#")  # nothing is allowed any more
        car.send("cars/car/position", b"2")
        car.send("!RESERVE/cars/car/HASH{!}")  # nobody asks any more
        car.send("cars/car/position", b"3")
        car.send("!PBAC/SET/filter_on_publish", b"false")  # nobody can switch it off
        car.reserve("cars/car/#", ("marketing",))
        car.send("cars/car/position", b"4")
        car.send("!PBAC/CLEAR")
        car.send("end", b"end")
        assert [client.came(b"end") for client in (billing, owner)] == [[b"1", b"3"]] * 2
        for client in (car, billing, owner):
            client.leave()

    await at_a_gateway(work)


@pytest.mark.parametrize("version", [paho.MQTTv311, paho.MQTTv5])
async def test_our_layer_around_paho(version: int) -> None:
    def work(port: int) -> None:
        fleet = [Fleet(port, name, version) for name in ("car", "billing", "owner")]
        car, billing, owner = (PurposeClient(one.paho) for one in fleet)
        car.reserve("cars/car/#", ["operations"], ["operations/routing"]).wait_for_publish(WITHIN)
        owner.presubscribe("screen", "cars/#", "operations").wait_for_publish(WITHIN)
        screen = Fleet(port, "billing", version, client_id="screen")
        assert screen.subscribe("cars/#") == [1]
        billing.subscribe_with_purpose("cars/+/position", "operations/billing")
        assert fleet[1]._told.get(timeout=WITHIN) == [1]
        for one in (fleet[1], screen):
            one.subscribe("end")
        car.send("cars/car/position", b"1").wait_for_publish(WITHIN)
        car.reserve("cars/car/#").wait_for_publish(WITHIN)
        car.send("cars/car/position", b"2").wait_for_publish(WITHIN)
        car.release("cars/car/#").wait_for_publish(WITHIN)
        car.send("cars/car/position", b"3", retain=True).wait_for_publish(WITHIN)
        car.send("end", b"end").wait_for_publish(WITHIN)
        assert [one.came(b"end") for one in (fleet[1], screen)] == [[b"1", b"3"]] * 2
        for one in (*fleet, screen):
            one.leave()

    await at_a_gateway(work)


def test_what_is_set_is_set_on_pahos_client() -> None:
    under = paho.Client(paho.CallbackAPIVersion.VERSION2)
    client = PurposeClient(under)
    client.on_message = print
    assert under.on_message is client.on_message is print


@pytest.mark.parametrize(
    "say",
    [
        lambda client: client.reserve("a/HASH", ["x"]),
        lambda client: client.reserve("", ["x"]),
        lambda client: client.reserve("a", "operations"),
        lambda client: client.reserve("a", ["x,y"]),
        lambda client: client.reserve("a", [""]),
        lambda client: client.presubscribe("a/b", "t", "x"),
        lambda client: client.subscribe_with_purpose("t", "x}"),
    ],
)
def test_what_cannot_be_said_in_a_topic(say: Callable[[PurposeClient], object]) -> None:
    with pytest.raises(UsageError):
        say(PurposeClient(None))


@pytest.mark.parametrize("version", [paho.MQTTv311, paho.MQTTv5])
async def test_consent_withdrawn_while_messages_wait_for_a_client_that_is_away(version: int) -> None:
    def work(port: int) -> None:
        car = Fleet(port, "car", version)
        away = Fleet(port, "billing", version, clean=False)
        away.subscribe_with_purpose("cars/#", "operations/billing")
        away.subscribe_with_purpose("$share/g/end", "operations/billing")
        car.reserve("cars/car/#", ("operations",))
        away.leave()
        car.paho.publish("cars/car/kept", b"kept", 1, retain=True).wait_for_publish(WITHIN)
        car.send("cars/car/position", b"1")
        car.reserve("cars/car/#")
        car.send("end", b"end")
        back = Fleet(port, "billing", version, clean=False)
        assert back.came(b"end") == []
        assert back.subscribe_with_purpose("cars/car/kept", "operations/billing") == [1]
        car.send("end", b"end")
        assert back.came(b"end") == []
        car.leave()
        back.leave()

    await at_a_gateway(work)
