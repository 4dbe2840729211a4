"""What an owner's configuration says, in a few lines for the one who wrote it."""

from __future__ import annotations

from hushcast_located.owner_service.settings import STDIN, OwnerSettings
from hushcast_runtime.wording import counted


def summary(settings: OwnerSettings) -> dict[str, list[str]]:
    """Return which key signs, where messages come from and batches go to, by name."""
    given = settings.input
    sources = {
        "lines from standard input"
        if given.lines == STDIN
        else f"lines from the pipe {given.lines}": given.lines,
        f"files in {given.directory}": given.directory,
        f"the topic whose link is in {given.topic}": given.topic,
    }
    return {
        "state": [str(settings.state_path())],
        "key": [
            settings.key or "a key of its own",
            *([f"the one in {settings.former_key} hands over to it"] if settings.former_key else []),
        ],
        "feed": [f"the link in {settings.feed}"],
        "input": [told for told, source in sources.items() if source is not None],
        "interval": [counted(settings.interval, "second")],
        "distance": [f"{settings.max_distance:g} km"],
        "daemon": [settings.daemon.socket],
    }
