"""`hushcast run`: runs any program, which its configuration names."""

from __future__ import annotations

from pathlib import Path

import click

from hushcast_cli.configuration.chosen_program import (
    chosen_program,
    program_argument,
    program_config_option,
)


@click.command(short_help="Run a daemon, gateway or provider by its configuration.")
@program_argument
@program_config_option
def run(program: str | None, config: Path | None) -> None:
    """Run a program in the foreground until SIGTERM or Ctrl-C.

    Its configuration says which: a relay, a client, a directory, a server or proxy of a central network, a
    broker, a tomography service, an MQTT gateway, a provider or an owner of a located feed. Without
    --config it is the one that `hushcast init` wrote; where there are several, PROGRAM tells, such as `node`,
    `directory`, `central-server`, `central-proxy`, `broker`, `tomography`, `gateway`, `located-provider`,
    `located-owner`.

    A configuration that could reach anything outside Tor, or that lets in strangers, is refused, with exit
    code 2. Logs go to standard error and never show topics, payloads, keys or onion addresses. SIGHUP makes
    it read its `log` section again, and what else may change while it runs.

    \b
    Examples:
      hushcast run
      hushcast run gateway
      hushcast run --config relay.toml
    """
    chosen, file = chosen_program(program, config)
    chosen.start(file)
