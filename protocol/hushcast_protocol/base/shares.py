"""Shares: how much of what all users have in common one of them may take.

A user may have up to four times what is left free. So a lone user gets four fifths of all; who comes then
finds the rest, and ten who take what they can leave a forty-first part. Of things that are counted nothing is
left once a quarter as many users as there are things take what they can. Nobody has to know how many users
there are. Source: the dynamic thresholds of Choudhury and Hahne for buffers
that queues share (1998).
"""

from __future__ import annotations

TIMES_FREE = 4  # what one may have is at most so many times what is free

User = str | None
"""Whose share it is; `None` for what comes from the network or an earlier version, and is nobody's here."""


class Shares:
    """What there is of one thing, in its unit, and who has how much."""

    def __init__(self, whole: int) -> None:
        self._whole = whole
        self._of: dict[User, int] = {}
        self.taken = 0

    def may_take(self, user: User, amount: int = 1) -> bool:
        """Tell whether a user may take so much more."""
        free = self._whole - self.taken - amount
        return self._of.get(user, 0) + amount <= TIMES_FREE * free

    def take_free(self, user: User, amount: int) -> bool:
        """Take so much more if the user may, and return whether it did."""
        had = self._of.get(user, 0)
        if had + amount > TIMES_FREE * (self._whole - self.taken - amount):
            return False
        self._of[user] = had + amount
        self.taken += amount
        return True

    def take(self, user: User, amount: int = 1) -> None:
        """Note that it did; what an earlier run had is taken whether it may be or not."""
        self._of[user] = self._of.get(user, 0) + amount
        self.taken += amount

    def give_back(self, user: User, amount: int = 1) -> None:
        """Note that it has so much less."""
        self.taken -= amount
        if left := self._of.get(user, 0) - amount:
            self._of[user] = left
        else:
            self._of.pop(user, None)

    def of(self, user: User) -> int:
        """Return how much a user has."""
        return self._of.get(user, 0)
