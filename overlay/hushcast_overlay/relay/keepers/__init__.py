"""What a relay hands in to keepers, and what it keeps as one."""
