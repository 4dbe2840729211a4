"""Purposes in the MQTT gateway: what clients may use messages for, and who says so."""
