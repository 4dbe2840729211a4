"""A private Tor network and daemons on one machine: as processes, or all in one process."""
