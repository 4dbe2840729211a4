"""What a directory runs: descriptors, heads, agreement with other authorities, and its answers."""
