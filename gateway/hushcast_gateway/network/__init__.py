"""The side of the network: what travels goes out and comes in through a daemon."""
