"""Every decision of Hushcast, as pure functions: no I/O, clock or randomness of its own."""
