"""The MQTT gateway: any MQTT client on one side, a Hushcast daemon on the other."""
