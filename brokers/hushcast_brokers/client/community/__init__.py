"""A daemon's part in the privacy model `community`."""
