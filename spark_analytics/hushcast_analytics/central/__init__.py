"""Analysis of traces of the central system: a server and proxies in place of relays."""
