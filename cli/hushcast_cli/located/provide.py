"""`hushcast located provide` and what goes with it: runs a provider, and looks for what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import click

from hushcast_cli.configuration.config_summary import tell_summary
from hushcast_cli.configuration.places import config_of
from hushcast_cli.options import FILE, Choices, config_option, json_option, pass_choices

_config_option = config_option(
    "The configuration, TOML; the one that `hushcast init located-provider` wrote unless given."
)


@click.command("provide")
@_config_option
def provide(config: Path | None) -> None:
    """Run a provider of a located feed in the foreground until SIGTERM or Ctrl-C.

    It takes batches from the feed's owner and subscriptions from whoever has its offer, and publishes an
    answer to each subscription for each batch. All goes through the daemon at `daemon.socket`: it opens no
    other connection, and does not learn who subscribes. Logs go to standard error and never show places,
    words or links.

    \b
    Example:
      hushcast located provide --config provider.toml
    """
    from hushcast_located.service.process import run_provider
    from hushcast_located.service.settings import ProviderSettings
    from hushcast_runtime.processes.config import load_settings

    file = config_of("located-provider", config)
    run_provider(lambda: load_settings(file, ProviderSettings))


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


@click.command("check-config")
@click.argument("file", type=FILE, metavar="F")
@json_option
@pass_choices
def check_provider_config(choices: Choices, file: Path) -> None:
    """Show what a provider's configuration says.

    Nothing is started. A configuration that cannot be used ends with exit code 2, the key that is wrong and
    why; `located provide` refuses to start with the same words.

    \b
    Example:
      hushcast located check-config provider.toml
    """
    from hushcast_located.service.settings import ProviderSettings
    from hushcast_located.service.summary import summary
    from hushcast_runtime.processes.config import load_settings

    tell_summary(choices, file, "located-provider", summary(load_settings(file, ProviderSettings)))


@click.command("doctor")
@_config_option
@json_option
@pass_choices
def provider_doctor(choices: Choices, config: Path | None) -> None:
    """Look for what keeps a provider from working.

    Says what to do about it. Looks at the state, the links, the daemon, and, if the provider runs, at batches
    that wait or never came, and how full it is. Run it as the provider's user or as root. Ends with exit
    code 1 if anything is bad.

    \b
    Example:
      sudo hushcast located doctor
    """
    import trio

    from hushcast_cli.operate.doctor import tell_findings
    from hushcast_located.service.doctor import examine
    from hushcast_located.service.settings import ProviderSettings
    from hushcast_runtime.processes.config import load_settings

    settings = load_settings(config_of("located-provider", config), ProviderSettings)
    tell_findings(choices, trio.run(examine, settings))


COMMANDS = (provide, offer, check_provider_config, provider_doctor)
