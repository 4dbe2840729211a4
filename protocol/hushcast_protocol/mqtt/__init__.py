"""MQTT 3.1.1 and 5, without I/O: packets and their codec, topic filters, sessions, the broker's decisions."""
