"""Commands about MQTT gateways."""
