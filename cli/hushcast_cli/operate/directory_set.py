"""`hushcast admin directory init` and `members`: the configurations of several directories that agree."""

from __future__ import annotations

import functools
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.options import FOLDER, GIVEN, json_option, number_option, shard_size_option
from hushcast_cli.testnets.directory_simulation import AUTHORITIES
from hushcast_protocol.base.epochs import MAX_EPOCH, MIN_EPOCH

if TYPE_CHECKING:
    from hushcast_directory.server.settings import AdmissionSection
    from hushcast_runtime.processes.config import AuthoritySection, NetworkSection

DEFAULT_EPOCH = 3600  # seconds
MOST_WORK = 20  # `MAX_WORK`, which loads what `--help` need not wait for
MOST_RELAYS = 2000  # `MAX_RELAYS`, as well
CONFIG, STATE = "directory.toml", "state"
NETWORK_FILE = "network.toml"


def rules_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add what a set agrees on: the command gets `quorum`, `rules` of admission, and `shard_size`."""

    @click.option(
        "--quorum",
        type=click.IntRange(1, AUTHORITIES),
        metavar="Q",
        help="Directories that must agree on a roster.  [default: more than half]",
    )
    @click.option(
        "--newcomers",
        type=click.IntRange(0, MOST_RELAYS),
        default=0,
        metavar="N",
        help="Relays that are seated a day at least; 0, unless given: all who come.",
    )
    @click.option(
        "--growth",
        type=click.FloatRange(0, 100),
        default=0,
        metavar="P",
        help="The same in percent of the network, where that is more; with --newcomers.",
    )
    @click.option("--age", is_flag=True, help="Seat those who were known the day before.")
    @click.option(
        "--work",
        type=click.IntRange(0, MOST_WORK),
        default=0,
        metavar="B",
        help="Bits of work that a name costs: with 20 a core looks for a day.",
    )
    @shard_size_option()
    @functools.wraps(command)
    def wrapped(*given: Any, newcomers: int, growth: float, age: bool, work: int, **named: Any) -> None:
        from hushcast_directory.server.settings import AdmissionSection

        if growth and not newcomers:
            raise click.UsageError("--growth needs --newcomers: without it all who come are seated")
        rules = AdmissionSection(newcomers=newcomers, growth=round(growth * 10), age=age, work=work)
        command(*given, rules=rules, **named)

    return wrapped


@click.command("init")
@click.argument("folder", type=FOLDER, metavar="DIR")
@click.option(
    "--authorities",
    type=click.IntRange(1, AUTHORITIES),
    required=True,
    metavar="N",
    help="How many directories.",
)
@click.option("--network", metavar="NAME", help="The network's name; a random one unless given.")
@click.option(
    "--epoch",
    type=click.IntRange(MIN_EPOCH, MAX_EPOCH),
    default=DEFAULT_EPOCH,
    show_default=True,
    metavar="S",
    help="The network's epochs, in seconds.",
)
@number_option(
    "--first-roster", 1, MOST_RELAYS, default=1, help="Relays that must be known before the first roster."
)
@rules_options
@json_option
@pass_choices
def init(
    choices: Choices,
    folder: Path,
    authorities: int,
    network: str | None,
    epoch: int,
    first_roster: int,
    quorum: int | None,
    rules: AdmissionSection,
    shard_size: int | None,
) -> None:
    """Write the configurations and keys of N directories that agree, one folder each, below DIR.

    Move each folder to its machine, set `state` in its directory.toml to where `state` lies then, and give
    network.toml to everyone who may join. Whoever runs this has all keys: operators who do not trust each
    other run `hushcast init directory` each, and put the set together with `admin directory members`.

    \b
    Example:
      hushcast admin directory init set --authorities 5 --quorum 3 --newcomers 20 --growth 2 --age
    """
    from hushcast_directory.server.process import KEY_FILES
    from hushcast_protocol.base.addresses import onion_address
    from hushcast_protocol.base.errors import UsageError
    from hushcast_runtime.environment import system_environment
    from hushcast_runtime.files import load_seed, private_directory, write_private
    from hushcast_runtime.processes.config import AuthoritySection, NetworkSection
    from hushcast_runtime.processes.network_file import network_of_several

    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty: name a directory that does not exist yet")
    needed = _quorum(authorities, quorum)
    section = NetworkSection(name=network or f"network-{secrets.token_hex(3)}", epoch_seconds=epoch)
    randomness = system_environment().randomness
    folders = [folder.absolute() / str(number) for number in range(1, authorities + 1)]
    listed = []
    for own in folders:
        private_directory(own)
        state = private_directory(own / STATE)
        seed, service = (load_seed(state / name, randomness) for name in KEY_FILES)
        listed.append(AuthoritySection(key=seed.public().hex(), address=onion_address(service.public())))
    lines = set_lines(listed, needed, rules, shard_size)
    for own in folders:
        text = _config(own, section, first_roster) + "\n" + lines
        _check(text, str(own / CONFIG))
        write_private(own / CONFIG, text.encode())
    write_private(folder / NETWORK_FILE, network_of_several(section, listed, needed).encode())
    _tell(choices, folder, folders)


@click.command("members")
@click.argument("files", type=GIVEN, metavar="FILE...", nargs=-1, required=True)
@rules_options
def members(
    files: tuple[Path, ...], quorum: int | None, rules: AdmissionSection, shard_size: int | None
) -> None:
    """Print what the configurations of several directories have in common, from their network.toml.

    Each directory runs alone first (`hushcast init directory` with the same --network and --epoch, `hushcast
    run`) and writes a network.toml. What this prints goes behind each one's directory.toml, the
    same everywhere.

    \b
    Example:
      hushcast admin directory members a.toml b.toml c.toml --newcomers 20 --growth 2 --age >>directory.toml
    """
    from hushcast_cli.configuration.operator_files import read_given
    from hushcast_cli.output import write
    from hushcast_node.settings import NetworkFile
    from hushcast_protocol.base.errors import UsageError
    from hushcast_runtime.processes.config import AuthoritySection, parse_toml

    if len(files) > AUTHORITIES:
        raise UsageError(f"{len(files)} directories are too many: {AUTHORITIES} at most agree")
    listed: dict[str, AuthoritySection] = {}
    network: NetworkSection | None = None
    for file in files:
        data, where = read_given(file)
        one = parse_toml(data, where, NetworkFile).network
        if one.directory is None or one.directory_key is None:
            raise UsageError(f"{where}: this is of several directories already: take each one's own file")
        if network is not None and one.network() != network.network():
            raise UsageError(f"{where}: of another network than {files[0]}: name, profile or epoch differ")
        if one.directory_key in listed:
            raise UsageError(f"{where}: this directory is given twice")
        network = one
        listed[one.directory_key] = AuthoritySection(key=one.directory_key, address=one.directory)
    write(set_lines(list(listed.values()), _quorum(len(listed), quorum), rules, shard_size).encode())


def set_lines(
    listed: Sequence[AuthoritySection], quorum: int, rules: AdmissionSection, shard_size: int | None
) -> str:
    """Return the lines of `[authorities]`, the same in every configuration of the set."""
    from hushcast_runtime.processes.network_file import toml_text

    rows = "".join(
        f"  {{ key = {toml_text(one.key)}, address = {toml_text(one.address)} }},\n"
        for one in sorted(listed, key=lambda one: one.key)
    )
    size = "" if shard_size is None else f"shard_size = {shard_size}\n"
    return (
        "# The directories that agree, the same lines at each of them.\n"
        f"[authorities]\nquorum = {quorum}\n{size}members = [\n{rows}]\n"
        "\n# What newcomers need for a seat.\n"
        f"[authorities.admission]\nnewcomers = {rules.newcomers}\ngrowth = {rules.growth}\n"
        f"age = {'true' if rules.age else 'false'}\nwork = {rules.work}\n"
    )


def _quorum(authorities: int, quorum: int | None) -> int:
    from hushcast_protocol.base.errors import UsageError

    needed = authorities // 2 + 1 if quorum is None else quorum
    if not authorities < 2 * needed <= 2 * authorities:
        raise UsageError(
            f"--quorum {needed}: of {authorities} directories it is between {authorities // 2 + 1} and"
            f" {authorities}, so that any two quorums have one in common"
        )
    return needed


def _config(own: Path, network: NetworkSection, first_roster: int) -> str:
    from hushcast_cli.configuration.first_config import NetworkFoundation, first_config
    from hushcast_cli.configuration.places import ProgramPlaces

    places = ProgramPlaces(own / CONFIG, own / STATE, None, None)
    text = first_config("directory", places, None, NetworkFoundation(network.name, network.epoch_seconds))
    return text.replace("first_roster = 1\n", f"first_roster = {first_roster}\n")


def _check(text: str, where: str) -> None:
    from hushcast_directory.server.settings import DirectorySettings
    from hushcast_runtime.processes.config import parse_settings

    parse_settings(text.encode(), where, DirectorySettings)


def _tell(choices: Choices, folder: Path, folders: Sequence[Path]) -> None:
    from hushcast_cli.output import json_line, text_line, write

    network = folder.absolute() / NETWORK_FILE
    if choices.json:
        write(json_line({"folders": [str(own) for own in folders], "network": str(network)}))
        return
    for own in folders:
        write(text_line(f"{own}: configuration and keys of a directory"))
    write(text_line(f"{network}: for everyone who may join"))
    write(text_line(f"next, at each: hushcast run --config {folders[0].name}/{CONFIG}"))
