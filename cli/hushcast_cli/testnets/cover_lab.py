"""`hushcast lab cover`: what rounds of letters hide, and from whom, beside controls that have to be found."""

from __future__ import annotations

import click

from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.options import json_option, number_option, seed_option

MAX_USERS = 10_000  # of the lab; a draw of them takes seconds
MAX_LAB_RELAYS = 2_000  # as many as a network has that is not cut
MAX_LAB_DRAWS = 1_000  # of the lab; an hour for 1,000 users


@click.command("cover")
@number_option(
    "--users", 100, MAX_USERS, default=1000, help="Daemons with cover; each is the author of a topic."
)
@number_option("--relays", 48, MAX_LAB_RELAYS, default=500, help="Relays of the network.")
@number_option("--width", 4, 16, default=8, help="Relays of each list.")
@number_option("--draws", 1, MAX_LAB_DRAWS, default=40, help="Draws of lists, chains and colluders.")
@seed_option
@json_option
@pass_choices
def cover_lab(choices: Choices, /, users: int, relays: int, width: int, draws: int, seed: int) -> None:
    """Measure what cover hides, and what it does not yet.

    Letters are sealed and passed in rounds; a watcher compares lines, a second counts letters, a porter
    loses them, relays collude. Readers are looked for, too, as far as machines for them are there. Controls
    are built wrong and have to be found. The exit code is 0 whatever the figures are.

    \b
    Example:
      hushcast lab cover
      hushcast lab cover --users 300 --relays 200 --width 4 --seed 7 --json
    """
    from hushcast_cli.output import json_line, table, write
    from hushcast_cli.progress import reporting
    from hushcast_testnet.cover.colluding_relays import CollusionScene
    from hushcast_testnet.cover.cover_figures import cover_figures
    from hushcast_testnet.cover.lane_figures import lane_figures

    with reporting() as progress:
        scene = CollusionScene(users, relays, width, 0.0, draws, seed)
        found = [*cover_figures(scene, progress), *lane_figures(scene, progress)]
    if choices.json:
        shown = [
            {"figure": one.name, "value": one.value, "least": one.least, "most": one.most, "holds": one.holds}
            for one in found
        ]
        write(json_line({"figures": shown}))
        return
    write(table((one.name, _told(one.value, one.least, one.most, one.holds)) for one in found))


def _told(value: float, least: float, most: float, holds: bool) -> str:
    return f"{value:<8.4g}  {'holds' if holds else 'FAILS'}  {least:g} to {most:g}"
