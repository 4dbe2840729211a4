"""What a broker runs: children, clients, matching, and its place in the tree."""
