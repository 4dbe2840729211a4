"""The central system: re-routable encryption, what server and proxies say, and what the server decides."""
