"""What a proxy runs: its users, its link to the server, and what it transforms between them."""
