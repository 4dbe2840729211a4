"""The daemon, as relay and as client."""
