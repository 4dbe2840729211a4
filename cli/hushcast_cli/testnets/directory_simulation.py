"""`hushcast lab directories`: several directories that agree, while some of them lie."""

from __future__ import annotations

import click

from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.options import json_option, number_option, seed_option, shard_size_option
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.shard_count import SHARD_SIZE

AUTHORITIES = 9  # `MAX_AUTHORITIES`, which loads what `--version` need not wait for
MAX_EPOCHS = 1_000_000  # of a simulation: ten hours
MAX_SIMULATED = 2000  # relays: each epoch all of them are on every ballot
_ROWS = {
    "epochs": "epochs",
    "heads": "with one head",
    "forks": "with two heads",
    "without": "with none",
    "proven": "forks proven",
    "accused": "evidence",
    "named": "named in heads",
    "cut": "in shards",
    "wrong": "wrong",
}


@click.command("directories")
@number_option("--authorities", 1, AUTHORITIES, default=5, help="Directories that agree.")
@number_option(
    "--quorum", 1, AUTHORITIES, metavar="Q", help="Signatures that a head needs.  [default: more than half]"
)
@click.option(
    "--faulty",
    type=click.IntRange(0, AUTHORITIES - 1),
    metavar="F",
    help="How many of them are faulty, in all ways.  [default: as many as may be, N − Q]",
)
@number_option(
    "--epochs", 1, MAX_EPOCHS, default=110, help="Epochs; two faulty ones have 55 combinations of kinds."
)
@click.option(
    "--late",
    type=click.FloatRange(0, 1),
    default=0.0,
    show_default=True,
    metavar="SHARE",
    help="Messages of honest ones that miss their round.",
)
@number_option("--relays", 1, MAX_SIMULATED, default=6, help="Relays that register.")
@shard_size_option(default=SHARD_SIZE)
@seed_option
@json_option
@pass_choices
def simulate_authorities(
    choices: Choices,
    /,
    authorities: int,
    quorum: int | None,
    faulty: int | None,
    epochs: int,
    late: float,
    relays: int,
    shard_size: int,
    seed: int,
) -> None:
    """Simulate directories that agree on a head for each epoch, while some of them are faulty.

    Faulty ones are silent, crash, cast two ballots, tell some and not others, come late, reveal what does not
    fit, show old or made-up heads and sign any head, in every combination. Counts epochs with one head, with
    two and with none.

    \b
    Example:
      hushcast admin directory simulate --authorities 5 --quorum 3 --faulty 2 --epochs 110
      hushcast admin directory simulate --authorities 7 --quorum 5 --late 0.05 --epochs 110 --json
      hushcast admin directory simulate --relays 60 --shard-size 8 --epochs 110
    """
    from hushcast_cli.output import json_line, table, write
    from hushcast_cli.progress import reporting
    from hushcast_testnet.authorities.authorities_simulation import AuthoritiesScenario, simulate
    from hushcast_testnet.progress import now_and_then

    needed = authorities // 2 + 1 if quorum is None else quorum
    if not authorities < 2 * needed <= 2 * authorities:
        raise UsageError(
            f"--quorum {needed}: of {authorities} authorities it is between {authorities // 2 + 1} and"
            f" {authorities}, so that any two quorums have one in common"
        )
    bad = authorities - needed if faulty is None else faulty
    if bad >= authorities:
        raise UsageError(f"--faulty {bad}: one of the {authorities} authorities has to be honest")
    with reporting() as progress:
        plan = AuthoritiesScenario(authorities, needed, bad, epochs, late, seed, relays, shard_size)
        result = simulate(plan, now_and_then(progress)).as_dict()
    rows = [(_ROWS[name], str(value)) for name, value in result.items()]
    write(json_line(result) if choices.json else table(rows))
