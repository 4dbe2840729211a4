"""Sections of a gateway's configuration."""
