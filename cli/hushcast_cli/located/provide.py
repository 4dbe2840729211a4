"""`hushcast located offer`: what subscribers need of a provider."""

from __future__ import annotations

from pathlib import Path

import click

from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.configuration.places import config_of
from hushcast_cli.options import FILE, config_option, json_option

_config_option = config_option(
    "The configuration, TOML; the one that `hushcast init located-provider` wrote unless given."
)


@click.command("offer")
@_config_option
@click.option("--output", type=FILE, metavar="F", help="Write it into this file, too.")
@json_option
@pass_choices
def offer(choices: Choices, config: Path | None, output: Path | None) -> None:
    """Print a provider's offer, a line that subscribers need.

    It has the provider's key, the topic that it takes subscriptions on, the feed's owner, and how many bits
    of work a subscription costs. A provider also writes it to the file `offer` in its state directory, when
    it starts. Whoever has it can subscribe; subscribers should have the owner's key from somebody else, too.

    \b
    Example:
      hushcast located offer --output shops.offer
    """
    from hushcast_cli.output import json_line, text_line, write
    from hushcast_located.service.identity import read_identity
    from hushcast_located.service.settings import ProviderSettings
    from hushcast_protocol.spatial.offer import write_offer
    from hushcast_runtime.files import acting_as_owner
    from hushcast_runtime.processes.config import load_settings

    settings = load_settings(config_of("located-provider", config), ProviderSettings)
    with acting_as_owner(settings.state_path()):
        said = read_identity(settings).offer
    line = write_offer(said)
    if output is not None:
        output.write_text(f"{line}\n")
    if choices.json:
        found = {"offer": line, "owner": said.owner.hex(), "difficulty": said.difficulty}
        write(json_line(found))
    else:
        write(text_line(line))
