"""The overlay as pure decisions: no I/O, clock or randomness of its own."""
