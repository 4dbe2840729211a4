"""The directory: takes relays' descriptors and publishes signed, chained rosters."""
