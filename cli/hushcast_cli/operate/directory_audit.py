"""`hushcast admin directory audit`, `evidence`: what directories show, and what proves that one lied."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.options import GIVEN, config_option, json_option, number_option

if TYPE_CHECKING:
    from hushcast_node.settings import NodeSettings
    from hushcast_protocol.authorities.audit import Audit
    from hushcast_protocol.authorities.authority_set import Authorities
    from hushcast_protocol.base.roster import Network

MOST_EPOCHS = 48  # `MAX_AUDITED`, which loads what `--help` need not wait for
WITHIN = 600.0  # seconds for all of it: a tor of its own takes a minute to start


@click.command("audit")
@config_option("A node's configuration, which names the directories; the usual one unless given.")
@number_option("--epochs", 1, MOST_EPOCHS, default=1, help="Look at the rosters of the last N epochs.")
@click.option(
    "--proofs",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="F",
    help="Write the proofs of two heads for one epoch, if there are any, into this file.",
)
@json_option
@pass_choices
def audit(choices: Choices, config: Path | None, epochs: int, proofs: Path | None) -> None:
    """Ask all directories of a network for their rosters, and compare them.

    Checks what each one shows as a daemon does: signatures of a quorum, the chain of heads, that the relays
    are those that the head stands for, and each relay's signature. Of a network in shards it asks each
    directory for all shards of the newest head. Says who is away, behind, or shows what does not hold. No
    daemon needs to run. Over Tor it starts a tor of its own, or uses the system's, as the configuration has
    it. Ends with exit code 1 if anything is bad.

    \b
    Examples:
      hushcast admin directory audit
      hushcast admin directory audit --config /etc/hushcast/node.toml --epochs 24
    """
    from hushcast_cli.configuration.places import config_of
    from hushcast_cli.operate.doctor import tell_findings
    from hushcast_directory.server.kept_evidence import checked

    settings, pinned = _named(config_of("node", config))
    network = settings.network.network()
    found = _ask(settings, network, pinned, epochs)
    if proofs is not None and found.forks:
        _write_proofs(proofs, [checked(fork, network.id).line() for fork in found.forks])
    tell_findings(choices, found.findings)


@click.command("evidence")
@click.argument("file", type=GIVEN, metavar="[FILE]", required=False)
@config_option("The configuration of a directory, or of a node; the usual directory's unless given.")
@json_option
@pass_choices
def evidence(choices: Choices, file: Path | None, config: Path | None) -> None:
    """Show the proofs that directories said two things, each checked.

    Without FILE those that this directory keeps, which may run meanwhile. With FILE, or with `-`, those that
    somebody else printed with --json. A proof is by the accused's own signatures: nobody can make it up.

    \b
    Examples:
      hushcast admin directory evidence --json >proofs
      hushcast admin directory evidence proofs --config /etc/hushcast/node.toml
    """
    from hushcast_cli.configuration.operator_files import read_given
    from hushcast_cli.configuration.places import config_of
    from hushcast_cli.output import json_line, text_line, write
    from hushcast_directory.server.kept_evidence import MAX_PROOFS_FILE, checked, kept_proofs, read_proofs

    settings_file = config_of("directory", config)
    network, state, keys = _directory(settings_file)
    proofs = kept_proofs(state) if file is None else read_proofs(*read_given(file, MAX_PROOFS_FILE))
    for proof in proofs:
        told = checked(proof, network.id)
        if choices.json:
            write(json_line(told.line()))
            continue
        for key in told.accused:
            stranger = "" if key in keys else ", which is none of the directories of the configuration"
            write(text_line(f"epoch {told.epoch}: {told.kind}, by {key}{stranger}"))
    if not proofs and not choices.json:
        write(text_line("No evidence."))


def _named(file: Path) -> tuple[NodeSettings, Authorities]:
    """Return a node's settings and the directories that they name."""
    from hushcast_node.settings import JoinedNetworkSection, NodeSettings
    from hushcast_protocol.authorities.authority_set import Authorities
    from hushcast_protocol.base.errors import UsageError
    from hushcast_runtime.processes.config import load_settings

    settings = load_settings(file, NodeSettings)
    if not isinstance(settings.network, JoinedNetworkSection):
        raise UsageError(f"{file} is of a network without directories")
    pinned = settings.network.pinned(settings.transport)
    return settings, Authorities.of(pinned.members, pinned.quorum)


def _directory(file: Path) -> tuple[Network, Path, set[str]]:
    """Return the network, the state directory, and the keys of the directories that a configuration names."""
    from hushcast_cli.configuration.state import program_of
    from hushcast_directory.server.settings import DirectorySettings
    from hushcast_runtime.processes.config import load_settings

    if program_of(file).name == "node":
        node, authorities = _named(file)
        return node.network.network(), node.state_path(), {key.hex() for key in authorities.keys}
    settings = load_settings(file, DirectorySettings)
    section = settings.authorities
    keys = {one.key for one in section.members} if section is not None else set()
    return settings.network.network(), settings.state_path(), keys


def _ask(settings: NodeSettings, network: Network, pinned: Authorities, epochs: int) -> Audit:
    """Ask all of them over a transport of its own; raise `Failure` if that takes too long."""
    import tempfile

    import msgspec
    import trio

    from hushcast_cli.exits import Failure
    from hushcast_cli.progress import reporting
    from hushcast_directory.client.audit import audit_all
    from hushcast_runtime.environment import system_environment
    from hushcast_runtime.processes.process import open_transport

    async def run(folder: str) -> Audit:
        own = msgspec.structs.replace(settings, state=folder)
        async with trio.open_nursery() as nursery:
            transport = await open_transport(own, nursery, lambda tor: None)
            found = await audit_all(system_environment(), transport, network, pinned, epochs)
            nursery.cancel_scope.cancel()
        return found

    async def in_time(folder: str) -> Audit:
        with trio.fail_after(WITHIN):
            return await run(folder)

    with tempfile.TemporaryDirectory(prefix="hushcast-audit-") as folder, reporting() as progress:
        progress("asking the directories")
        try:
            return trio.run(in_time, folder)
        except trio.TooSlowError:
            raise Failure(f"the directories were not asked within {WITHIN:g} s: is Tor up?") from None


def _write_proofs(file: Path, lines: list[dict[str, object]]) -> None:
    from hushcast_cli.configuration.config_files import write_whole
    from hushcast_cli.output import json_line

    write_whole(file, b"".join(json_line(line) for line in lines).decode(), 0o600)
