"""`hushcast admin step-back`: a state becomes one of the version before, for the release before."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.configuration.state import daemon_config_option
from hushcast_cli.options import json_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hushcast_runtime.storage.state_layout import Migration


@click.command("step-back", short_help="Make a state one of the version before.")
@daemon_config_option
@json_option
@pass_choices
def step_back(choices: Choices, config: Path) -> None:
    """Make the state of the stopped program with this configuration one of the version before.

    The release that wrote that version can be installed then; started again, this one brings the state to its
    own version. Where the version before cannot hold what is there, it is named, and nothing is changed. Run
    it as the program's user, or as root.

    \b
    Example:
      sudo hushcast admin step-back --config /etc/hushcast/node.toml
    """
    from hushcast_cli.configuration.state import program_of
    from hushcast_cli.output import json_line, text_line, write

    program = program_of(config)
    state = program.load(config).state_path()
    version = _stepped_back(state, program.migrations.load())
    if choices.json:
        write(json_line({"state": str(state), "version": version}))
    else:
        write(text_line(f"{state}: of version {version} now"))
        write(text_line("Install the release that wrote that version: started again, this one brings it on."))


def _stepped_back(state: Path, migrations: Sequence[Migration]) -> int:
    """Take the step, holding the state; return the version that it has then."""
    import trio

    from hushcast_protocol.base.errors import UsageError
    from hushcast_runtime.exception_groups import ungrouped
    from hushcast_runtime.storage.state_directory import stopped
    from hushcast_runtime.storage.state_layout import DATABASE, step_back
    from hushcast_runtime.storage.store import SqliteStore, StoreError

    async def take() -> int:
        store = SqliteStore(state / DATABASE)
        try:
            with ungrouped(UsageError, StoreError):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(store.run)
                    await step_back(store, migrations)
                    nursery.cancel_scope.cancel()
        finally:
            store.close()
        return store.version

    with stopped(state, len(migrations)):
        if not (state / DATABASE).is_file():
            raise UsageError(f"there is no {DATABASE} in {state}: a program makes one when it runs")
        return trio.run(take)
