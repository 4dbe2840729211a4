"""The keys of an owner that runs: the one that signs, and the one that did before."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hushcast_located.keys import read_owner
from hushcast_located.owner_service.settings import OwnerSettings
from hushcast_protocol.base.crypto.secrets import Randomness, Seed
from hushcast_runtime.files import load_seed

KEY_FILE = "owner.key"
"""In the state directory: the key that signs, where none was configured."""
PUBLIC_FILE = "owner.public"
"""… and its public half, for subscribers and the provider."""


@dataclass(frozen=True)
class OwnerSeeds:
    """The key that signs batches from now on, and the one that has handed over to it, or is to."""

    now: Seed
    former: Seed | None = None

    @property
    def author(self) -> Seed:
        """The key that signs what carries batches: one that a provider knows before it hears of another."""
        return self.former or self.now


def open_seeds(settings: OwnerSettings, randomness: Randomness) -> OwnerSeeds:
    """Return the keys, drawing the one that signs where none is configured; raise `UsageError`."""
    state = settings.state_path()
    now = read_owner(Path(settings.key)) if settings.key else load_seed(state / KEY_FILE, randomness)
    former = read_owner(Path(settings.former_key)) if settings.former_key else None
    (state / PUBLIC_FILE).write_text(f"{now.public().hex()}\n")
    return OwnerSeeds(now, former)
