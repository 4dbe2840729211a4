"""Networks of many shards: which relays each day puts together, and how many of them collude."""
