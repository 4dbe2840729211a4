"""Shards: a subscription spans some 500 relays, however many a network has."""
