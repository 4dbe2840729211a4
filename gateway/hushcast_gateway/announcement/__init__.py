"""How a gateway is found in its house, where that is wanted: by mDNS."""
