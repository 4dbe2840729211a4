"""Content-based brokers: posets, tables, layers, privacy models."""
