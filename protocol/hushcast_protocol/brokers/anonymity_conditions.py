"""Conditions of k-filter anonymity: which subscribers a filter is hidden among (Tarkoma and Prehofer §4)."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal


class AnonymityCondition(StrEnum):
    """Whose sources a level counts. Succ and ImSucc leave the filter itself out, as in the paper."""

    SOURCE = "source"
    """Source(f)."""
    IMMEDIATE_SUCCESSOR = "immediate-successor"
    """Source(ImSucc(f)), Definition 1."""
    SUCCESSOR = "successor"
    """Source(Succ(f)), Definition 2."""
    IMMEDIATE_PREDECESSOR_SUCCESSOR = "immediate-predecessor-successor"
    """Source(ImSucc(ImPred(f))), Definition 3."""
    IMMEDIATE_PREDECESSOR = "immediate-predecessor"
    """Source(Succ(ImPred(f))), Definition 4."""


LEAST_CROWD = 5  # sources: the smallest crowd of which strangers are told that it is there

Fallback = Literal["refuse", "wait", "generalise", "bogus"]
"""What becomes of a filter whose level is too low."""

CrowdScope = Literal["edge", "network"]
"""Whose sources a level counts: those of one edge broker, or of all of them."""
