"""The central system: server and proxies, and the carrier that travels by them (VB §4.1)."""
