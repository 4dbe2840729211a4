"""What a daemon of such a network runs: its attachment to an edge broker, its routes, and publishing."""
