"""Cover of a daemon: what it publishes goes in letters, in rounds that say nothing of its use."""
