"""docs/configuration.md names every setting with its default, and its examples can be used."""

from __future__ import annotations

import json
import types
import typing
from pathlib import Path

import msgspec
import pytest
from pages import ROOT, blocks, part, rows

from hushcast_brokers.broker.settings import BrokerSettings, RootSettings
from hushcast_brokers.tomography.settings import TomographySettings
from hushcast_central.settings import ProxySettings, ServerSettings
from hushcast_directory.server.settings import DirectorySettings
from hushcast_gateway.settings import GatewaySettings
from hushcast_located.owner_service.settings import OwnerSettings
from hushcast_located.service.settings import ProviderSettings
from hushcast_node.settings import NodeSettings
from hushcast_runtime.processes.config import load_settings

PAGE = ROOT / "docs" / "configuration.md"
KINDS: dict[str, type[msgspec.Struct]] = {
    "node": NodeSettings,
    "directory": DirectorySettings,
    "gateway": GatewaySettings,
    "central-server": ServerSettings,
    "central-proxy": ProxySettings,
    "broker-root": RootSettings,
    "broker": BrokerSettings,
    "tomography": TomographySettings,
    "located-provider": ProviderSettings,
    "located-owner": OwnerSettings,
}
EXAMPLES = [block for block in blocks(PAGE) if block.language == "toml"]


def _settings(kind: type[msgspec.Struct], before: str = "") -> dict[str, str]:
    """Return every setting's name with its default as the page should show it."""
    hints = typing.get_type_hints(kind)
    found: dict[str, str] = {}
    for field in msgspec.structs.fields(kind):
        name, hint = before + field.encode_name, hints[field.name]
        if sections := _sections(hint):
            for section in sections:
                found |= _settings(section, f"{name}.")
            if len(sections) > 1:  # a key tells them apart; before there was one, all were of the first kind
                found[f"{name}.{sections[0].__struct_config__.tag_field}"] = (
                    f'`"{sections[0].__struct_config__.tag}"`'
                )
        elif (entry := _section((typing.get_args(hint) or (None,))[0])) is not None:
            found |= _settings(entry, f"{name}.")  # a list of sections
        elif (named := _section((typing.get_args(hint) or (None,))[-1])) is not None:
            found |= _settings(named, f"{name}.NAME.")
        elif field.default is msgspec.NODEFAULT:
            found[name] = "required"
        else:
            found[name] = "none" if field.default is None else f"`{json.dumps(field.default)}`"
    return found


def _section(hint: object) -> type[msgspec.Struct] | None:
    return next(iter(_sections(hint)), None)


def _sections(hint: object) -> list[type[msgspec.Struct]]:
    kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    return [one for one in kinds if isinstance(one, type) and issubclass(one, msgspec.Struct)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_setting_is_named_with_its_default(kind: str) -> None:
    table = rows(part(PAGE, f"settings: {kind}"))[2:]
    assert {cells[0].strip("`"): cells[1] for cells in table} == _settings(KINDS[kind])
    assert len(table) == len(_settings(KINDS[kind]))
    assert all(len(cells) == 3 and cells[2] for cells in table)


def test_each_program_has_an_example() -> None:
    assert {block.note for block in EXAMPLES} == {("example", kind) for kind in KINDS}


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_examples_can_be_used(number: int, tmp_path: Path) -> None:
    block = EXAMPLES[number]
    assert block.note is not None
    file = tmp_path / "example.toml"
    file.write_text(block.text)
    load_settings(file, KINDS[block.note[1]])  # type: ignore[type-var]
