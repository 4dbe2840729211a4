"""Models without a daemon, played by the thousand."""
