"""The central system: server and proxies."""
