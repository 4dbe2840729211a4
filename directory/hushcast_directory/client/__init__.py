"""What asks directories: a daemon's source of rosters, what it trusts there, and audits."""
