"""A daemon as a process: its settings, life, readiness, doctors and metrics."""
