"""What SQLite raises where a database cannot be used, and how that is told."""

from __future__ import annotations

import sqlite3

FAILURES = (sqlite3.Error, UnicodeDecodeError, MemoryError)
"""A damaged schema is quoted in SQLite's message, which then may be no text; for a damaged size there is no
memory."""


def told(error: Exception) -> str:
    """Return what the database says, which is nothing where it found no memory."""
    return str(error) or "it is damaged, or this machine has no memory left"
