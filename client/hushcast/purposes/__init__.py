"""Purposes for programs that speak MQTT: what messages of a gateway may be used for."""
