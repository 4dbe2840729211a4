"""MQTT's packets, to bytes and back."""
