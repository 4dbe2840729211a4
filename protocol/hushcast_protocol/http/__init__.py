"""HTTP at a gateway: what requests mean in MQTT, and what is answered, in ntfy's words."""
