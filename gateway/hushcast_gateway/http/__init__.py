"""HTTP at a gateway: connections over which requests become clients of the broker."""
