"""A budget: how many small steps an answer may take, whoever asks and whatever it needs.

What a stranger makes others compute is counted where it is computed, so that all parts of one question share
one bound.
"""

from __future__ import annotations


class BudgetExhausted(Exception):
    """There were more steps than the budget has."""


class Budget:
    """Steps that are left."""

    __slots__ = ("_steps", "left")

    def __init__(self, steps: int) -> None:
        """`steps` are as small as whoever counts makes them, and alike."""
        self._steps = steps
        self.left = steps

    @property
    def is_whole(self) -> bool:
        """Whether nothing was taken yet: what is more than that will never be done."""
        return self.left == self._steps

    @property
    def is_spent(self) -> bool:
        """Whether `take` has raised: nothing more can be done."""
        return self.left < 0

    def take(self, steps: int) -> None:
        """Take steps; raise `BudgetExhausted`, then and from now on, where there are not so many."""
        self.left -= steps
        if self.left < 0:
            raise BudgetExhausted
