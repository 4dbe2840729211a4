"""What a relay does for daemons with cover: as a porter, a second, a third."""
