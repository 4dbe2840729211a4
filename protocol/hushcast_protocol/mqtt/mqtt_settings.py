"""What an operator may choose of a broker."""

from __future__ import annotations

import msgspec

from hushcast_protocol.mqtt.limits import MAX_PACKET, MqttLimits


class MqttSettings(msgspec.Struct, frozen=True):
    """What an operator may choose."""

    version: str = "0"
    """Of the program, as `$SYS/broker/version` has it."""
    maximum_packet: int | None = MAX_PACKET
    """Bytes of the largest packet that is taken, told to clients of version 5; `None` for the standard's."""
    limits: MqttLimits = MqttLimits()
    history: tuple[str, ...] = ()
    """Filters of topics that have a history."""
    history_seconds: int = 0
    """Seconds that it goes back."""
