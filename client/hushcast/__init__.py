"""Hushcast for programs: what is said to a daemon over its control socket."""
