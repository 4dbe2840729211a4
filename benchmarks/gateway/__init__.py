"""The MQTT gateway beside other brokers."""
