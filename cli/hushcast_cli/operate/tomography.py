"""`hushcast admin tomography`: asks how anonymous a filter is on its way to the root."""

from __future__ import annotations

from pathlib import Path

import click

from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.command_groups import CommandGroup
from hushcast_cli.configuration.places import config_of
from hushcast_cli.options import (
    GIVEN,
    check_one_topic,
    config_option,
    json_option,
    link_file_option,
    number_option,
    timeout_option,
    where_option,
)
from hushcast_protocol.brokers.anonymity_conditions import LEAST_CROWD


@click.group(cls=CommandGroup)
@json_option
def tomography() -> None:
    """Ask whether a filter has a crowd on its way to the root."""


@tomography.command("ask")
@click.argument("topic", required=False, metavar="[TOPIC]")
@link_file_option
@where_option
@click.option("--from", "origin", required=True, metavar="A", help="The edge broker that would show it.")
@click.option(
    "--k", type=click.IntRange(min=LEAST_CROWD), required=True, metavar="K", help="How many are enough."
)
@number_option("--spread", 1, default=1, help="Edge brokers that they are to be clients of.")
@config_option("A daemon's of the network; this user's node's unless given.")
@click.option("--service", type=GIVEN, metavar="F", help="The service's tomography.toml.")
@timeout_option
@json_option
@pass_choices
def ask(
    choices: Choices,
    topic: str | None,
    link_file: Path | None,
    where: str | None,
    origin: str,
    k: int,
    spread: int,
    config: Path | None,
    service: Path | None,
    timeout: float | None,
) -> None:
    """Ask whether K subscribers want just TOPIC with --where, wherever it is shown from A to the root.

    A is the key of an edge broker, or its first digits. Of fewer than 5 nobody is told. The service is asked
    over a circuit of its own, without a name. It learns the filter as brokers see it. --config tells the
    network and its transport, and the service where it has a section `tomography`; otherwise --service does.
    With `tor.mode = "own"` a second tor starts for the question, which takes a minute.

    \b
    Example:
      hushcast admin tomography ask news --from 3b6a27bc --k 5 --service tomography.toml
    """
    check_one_topic(topic, link_file)
    from hushcast_cli.daemon_calls import run
    from hushcast_cli.messages.topic_arguments import choose_topic
    from hushcast_cli.operate.tomography_question import TomographyOptions, ask_for, asker_settings, tell
    from hushcast_runtime.logs import configure_logs

    configure_logs("warning", False)
    settings = asker_settings(config_of("node", config), service)

    async def work() -> None:
        chosen = await choose_topic(topic, link_file)
        wanted = TomographyOptions(origin, k, spread)
        tell(choices, await ask_for(settings, chosen.topic, where or "", wanted))

    run(work, timeout)
