"""A relay by itself: messages, look-up, memory, traffic, connections."""
