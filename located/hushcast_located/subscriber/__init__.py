"""Subscribers: follow a feed through the daemon on this machine, and check all that a provider says."""
