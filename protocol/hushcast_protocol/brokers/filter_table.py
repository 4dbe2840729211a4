"""What stands behind a filter in any table of filters: in a poset, or in one with levels."""

from __future__ import annotations

from collections.abc import Hashable

Source = Hashable
"""A distinct subscriber behind a filter."""
