"""What the server runs: the register, matching and deliveries."""
