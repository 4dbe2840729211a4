"""Hashes, keys, seals and proofs of work."""
