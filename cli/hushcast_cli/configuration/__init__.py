"""Configurations: where they lie, and how they are read, checked and edited as text."""
