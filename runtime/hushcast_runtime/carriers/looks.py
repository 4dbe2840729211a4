"""Looking: how a publisher finds out whether what it published is there, where somebody keeps it."""

from __future__ import annotations

from typing import NamedTuple


class Looked(NamedTuple):
    """What those who were asked say of a message."""

    shown: int
    """How many show it."""
    missed: int
    """How many answer, and do not."""
    is_there: bool
    """Whether that suffices: one may say that it has it and have lost it, as its origins may."""
