"""Over a private Tor, at both distances."""
