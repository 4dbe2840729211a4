"""The side of clients: connections are taken, become streams, and are served by the broker."""
