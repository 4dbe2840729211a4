"""What every family stands on: bytes, hashes, keys, addresses, time, links, the list of members."""
