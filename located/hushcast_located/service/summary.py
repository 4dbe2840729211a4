"""What a provider's configuration says, in a few lines for the one who wrote it."""

from __future__ import annotations

from hushcast_located.service.settings import ProviderSettings
from hushcast_runtime.wording import counted


def summary(settings: ProviderSettings) -> dict[str, list[str]]:
    """Return whose feed is answered, for how many, and by which daemon, by name."""
    stamps = f"stamps of {counted(settings.difficulty, 'bit')}"
    return {
        "state": [str(settings.state_path())],
        "owner": [settings.owner.lower()],
        "feed": [f"the link in {settings.feed}"],
        "requests": [f"the link in {settings.requests}" if settings.requests else "a link of its own"],
        "answers": [f"{counted(settings.most, 'subscription')} at most, {stamps}"],
        "waits": [f"{counted(settings.patience, 'second')} for a batch that did not come"],
        "daemon": [settings.daemon.socket],
    }
