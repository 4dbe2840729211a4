"""The container backend: every daemon and every tor of a testnet in a container of its own."""
