"""What a relay runs: links, leases, forwarding, parcels, and what strangers hand in."""
