"""Asked: a network, its rules for newcomers, and who comes with how many names."""

from __future__ import annotations

from dataclasses import dataclass

TRY = 0.1  # seconds of one core that a try for work takes
VALID = 30  # days that work holds
DAY = 86_400  # seconds


@dataclass(frozen=True)
class Asked:
    """`runs` networks over so many `days`, which begin with `relays` honest ones.

    | field | meaning |
    |---|---|
    | `newcomers`, `growth`, `age`, `work` | the rules, as in `[authorities.admission]` of a directory |
    | `arriving` | honest newcomers a day, in the mean, at any hour |
    | `leaving` | share of the honest relays that leave for good in a day |
    | `names` | that one adversary has from the first hour on; without limit if `None` |
    | `cores` | with which it looks for work; it has as many names as it can pay for, `names` at most |
    """

    runs: int
    days: int
    relays: int
    newcomers: int = 20
    growth: int = 20
    age: bool = True
    work: int = 0
    arriving: float = 0.0
    leaving: float = 0.0
    names: int | None = None
    cores: float = 0.0
    seed: int = 1

    def names_on(self, day: int) -> int:
        """Return how many names the adversary has in all at the beginning of a day, from 0 on."""
        most = UNLIMITED if self.names is None else self.names
        if self.work == 0:
            return most
        a_day = self.cores * DAY / (TRY * 2**self.work)
        # After a validity of work all cores are busy with the names that there are.
        return min(most, int(a_day * min(day, VALID)))

    @property
    def cap(self) -> str:
        """The rules in words, for a table."""
        if not self.newcomers:
            return "none"
        return f"{self.newcomers}, {self.growth / 10:g} %" + (", age" if self.age else "")


UNLIMITED = 20_000  # names: ten times what may wait, so that more would change nothing but the time it takes
