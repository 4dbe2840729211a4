"""A link between two programs: its handshake, and what either end still owes the other."""
