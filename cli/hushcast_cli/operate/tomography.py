"""`hushcast tomography`: runs the service that tells how anonymous a filter is on its way, and asks it."""

from __future__ import annotations

from pathlib import Path

import click

from hushcast_cli.configuration.places import config_of
from hushcast_cli.options import (
    FILE,
    GIVEN,
    Choices,
    check_one_topic,
    config_option,
    json_option,
    link_file_option,
    pass_choices,
    timeout_option,
    where_option,
)
from hushcast_protocol.brokers.anonymity_conditions import LEAST_CROWD

_config_option = config_option(
    "The service's configuration; the one that `hushcast init tomography` wrote unless given."
)


@click.group()
@json_option
def tomography() -> None:
    """Ask whether a filter has a crowd on its way to the root, or run the service that tells."""


@tomography.command("run")
@_config_option
def run_tomography_command(config: Path | None) -> None:
    """Run the tomography service in the foreground until SIGTERM or Ctrl-C.

    It writes `tomography.toml`, the section that brokers and whoever asks need, into its state directory.

    \b
    Example:
      hushcast tomography run
    """
    from hushcast_brokers.tomography.process import run_tomography
    from hushcast_brokers.tomography.settings import TomographySettings
    from hushcast_runtime.processes.config import load_settings

    file = config_of("tomography", config)
    run_tomography(lambda: load_settings(file, TomographySettings))


@tomography.command("check-config")
@click.argument("file", type=FILE, metavar="F")
@json_option
@pass_choices
def check_tomography_config(choices: Choices, file: Path) -> None:
    """Show what the configuration of a tomography service says.

    Nothing is started. A configuration that cannot be used ends with exit code 2, the key that is wrong and
    why; `tomography run` refuses to start with the same words.

    \b
    Example:
      hushcast tomography check-config service.toml
    """
    from hushcast_brokers.broker.summary import tomography_summary
    from hushcast_brokers.tomography.settings import TomographySettings
    from hushcast_cli.configuration.config_summary import tell_summary
    from hushcast_runtime.processes.config import load_settings

    tell_summary(
        choices, file, "tomography-service", tomography_summary(load_settings(file, TomographySettings))
    )


@tomography.command("doctor")
@_config_option
@json_option
@pass_choices
def tomography_doctor(choices: Choices, config: Path | None) -> None:
    """Look for what keeps the tomography service from working.

    Says what to do about it, as `broker doctor` does, and which part of the brokers states. Ends with exit
    code 1 if anything is bad.

    \b
    Example:
      hushcast tomography doctor
    """
    import trio

    from hushcast_brokers.tomography.process import TOMOGRAPHY
    from hushcast_brokers.tomography.settings import TomographySettings
    from hushcast_cli.operate.doctor import tell_findings
    from hushcast_runtime.processes.config import load_settings
    from hushcast_runtime.processes.doctor import examine_from_outside

    settings = load_settings(config_of("tomography", config), TomographySettings)
    tell_findings(choices, trio.run(examine_from_outside, settings, TOMOGRAPHY))


@tomography.command("ask")
@click.argument("topic", required=False, metavar="[TOPIC]")
@link_file_option
@where_option
@click.option("--from", "origin", required=True, metavar="A", help="The edge broker that would show it.")
@click.option(
    "--k", type=click.IntRange(min=LEAST_CROWD), required=True, metavar="K", help="How many are enough."
)
@click.option(
    "--spread",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Edge brokers that they are to be clients of.",
)
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
    """Ask whether K subscribers want just TOPIC with --where, at every broker on the way from A to the root.

    A is the key of an edge broker, or its first digits. Of fewer than 5 nobody is told. The service is asked
    over a circuit of its own, without a name. It learns the filter as brokers see it. --config tells the
    network and its transport, and the service where it has a section `tomography`; otherwise --service does.
    With `tor.mode = "own"` a second tor starts for the question, which takes a minute.

    \b
    Example:
      hushcast tomography ask news --from 3b6a27bc --k 5 --service tomography.toml
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
