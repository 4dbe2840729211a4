"""A broker's part in the privacy model `community`."""
