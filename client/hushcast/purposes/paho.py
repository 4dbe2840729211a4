"""A thin layer around a client of paho-mqtt, for purposes at a Hushcast gateway.

    import paho.mqtt.client as mqtt
    from hushcast.purposes.paho import PurposeClient

    client = PurposeClient(mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, "dashboard"))
    client.connect("localhost", 1883)
    client.loop_start()
    client.reserve("home/#", aip=["marketing", "operations"], pip=["marketing/analytics"])
    client.subscribe_with_purpose("home/sensors/power/#", "operations/billing")
    client.send("home/sensors/power/392/total", b"3142")

It makes the calls of the program that was published with the scheme (Wolf et al., 2021, listing 1), in MQTT
3.1.1 and 5: all is said in topics. Everything else is paho's: `PurposeClient` has all that its client has.
Refusals come as paho tells them: a subscription's in `on_subscribe`, in version 5 a reservation's in
`on_publish`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hushcast.errors import UsageError

_SPELLED = {"#": "HASH", "+": "PLUS"}
_MARKS = frozenset("{}|,!")


class PurposeClient:
    """A paho client that can name purposes."""

    _client: Any
    _qos: int

    def __init__(self, client: Any, qos: int = 1) -> None:
        """`client` is a `paho.mqtt.client.Client`; `qos` is what this layer publishes and subscribes with."""
        vars(self).update(_client=client, _qos=qos)

    def __getattr__(self, name: str) -> Any:
        """Return what paho's client has."""
        return getattr(self._client, name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set what paho's client has: its callbacks, such as `on_message`."""
        setattr(self._client, name, value)

    def reserve(self, wanted: str, aip: Iterable[str] = (), pip: Iterable[str] = ()) -> Any:
        """Say what messages of a filter's topics may be used for (`aip`), and what not (`pip`).

        No `aip` means for nothing. It takes the place of what this user said for the same filter before.
        Return paho's `MQTTMessageInfo`; raise `UsageError` where a filter or purpose cannot be written.
        """
        return self._say(f"!RESERVE/{_spelled(wanted)}{{{_listed(aip)}|{_listed(pip)}}}")

    def release(self, wanted: str) -> Any:
        """Take this user's reservation of a filter away; return and raise as `reserve`."""
        return self._say(f"!RESERVE/{_spelled(wanted)}{{!}}")

    def presubscribe(self, client_id: str, wanted: str, purpose: str) -> Any:
        """Give a client's subscriptions to a filter a purpose: for clients that cannot name one.

        Return and raise as `reserve`.
        """
        if not client_id or set(client_id) & set("/#+"):
            raise UsageError("a client that is presubscribed has an identifier without /, # and +")
        return self._say(f"!PBAC/PRESUB/{client_id}/{_spelled(wanted)}{{{_checked(purpose)}}}")

    def subscribe_with_purpose(self, wanted: str, purpose: str) -> Any:
        """Subscribe to a filter for a purpose; return what paho's `subscribe` does, raise as `reserve`."""
        spelled = f"!AP/{_spelled(wanted)}{{{_checked(purpose)}}}"
        return self._client.subscribe(spelled, self._qos)

    def send(self, topic: str, payload: Any = None, retain: bool = False) -> Any:
        """Publish a message; return paho's `MQTTMessageInfo`."""
        return self._client.publish(topic, payload, self._qos, retain)

    def _say(self, topic: str) -> Any:
        return self._client.publish(topic, b"", max(self._qos, 1))


def _spelled(wanted: str) -> str:
    levels = wanted.split("/")
    if not wanted or set(levels) & set(_SPELLED.values()):
        raise UsageError("a level HASH or PLUS stands for # or +: rename it")
    return "/".join(_SPELLED.get(level, level) for level in levels)


def _listed(purposes: Iterable[str]) -> str:
    if isinstance(purposes, str):
        raise UsageError("give a list of purposes, not a text")
    return ",".join(_checked(one) for one in purposes)


def _checked(purpose: str) -> str:
    if not purpose or set(purpose) & _MARKS:
        raise UsageError("a purpose is made of a-z, 0-9, _, - and /, as in operations/billing")
    return purpose
