"""A private Tor network on one machine: its layout, its keys, and its processes."""
