"""Gauges of the server and of proxies: numbers alone, by no pseudonym, proxy or peer."""

CENTRAL_GAUGES = {
    "proxies_listed": "proxies that the server's configuration lists",
    "proxies_connected": "of these, those whose link to the server is open",
    "server_connected": "1 while a proxy's link to the server is open, else 0",
    "pseudonyms": "pseudonyms that are known here",
    "deliveries_waiting": "deliveries on the server's disk that no subscriber has acknowledged",
    "deliveries_waiting_bytes": "bytes of these, each body counted once",
    "kept_bytes": "bytes of publications that the server keeps for those who come later, 640 beside each",
    "connections": "users' connections that are open at a proxy",
}
"""Every gauge with its meaning; the server leaves out a proxy's, and a proxy the server's."""
