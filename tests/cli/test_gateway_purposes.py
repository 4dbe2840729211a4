"""`hushcast gateway purpose`, and what check-config and doctor say of purposes, as a person types it."""

from __future__ import annotations

from pathlib import Path

import pytest
from running import hushcast

from hushcast_gateway.purposes.purpose_state import PurposeState
from hushcast_gateway.purposes.records import AuditRecord, Presubscription
from hushcast_protocol.mqtt.kept.ledger import Ledger
from hushcast_protocol.mqtt.kept.mqtt_records import SESSION, SUBSCRIPTION, SessionRecord, SubscriptionRecord
from hushcast_protocol.mqtt.wire.packets import RequestedSubscription
from hushcast_protocol.purposes.clauses import Clause
from hushcast_protocol.purposes.purpose_names import Purpose
from hushcast_runtime.storage.changes import Change, Commit
from hushcast_runtime.storage.state_layout import DATABASE
from hushcast_runtime.storage.store import SqliteStore

CONFIG = """
program = "gateway"
state = "{tmp}/state"
[purposes]
vocabulary = "{tmp}/vocabulary"
{section}
[[listen]]
kind = "unix"
path = "{tmp}/mqtt.sock"
[users.car]
uid = [1]
reserve = ["cars/#"]
[users.billing]
uid = [2]
subscribe = ["cars/#"]
purposes = ["operations/billing"]
[users.device]
uid = [3]
subscribe = ["#"]
purpose = "operations"
"""


def written(tmp_path: Path, section: str = "") -> Path:
    (tmp_path / "vocabulary").write_text("operations/billing\nmarketing # all of it\n")
    file = tmp_path / "gateway.toml"
    file.write_text(CONFIG.format(tmp=tmp_path, section=section))
    return file


async def filled(tmp_path: Path) -> None:
    """Write what a gateway would have on its disk."""
    (tmp_path / "state").mkdir(mode=0o700)
    kept, ledger = PurposeState("tree"), Ledger()
    kept.attach(ledger)
    operations, none = frozenset({Purpose("operations")}), frozenset[Purpose]()
    kept.reserve(Clause("car", "cars/#", operations, none))
    kept.reserve(Clause("gone", "home/#", operations, frozenset({Purpose("marketing")})))
    kept.reserve(Clause("gone", "attic/7", none, none))
    kept.presubscribe(Presubscription("device", "screen", "cars/7", Purpose("operations/billing"), "billing"))
    kept.audit(AuditRecord(0.0, "car", "c7", "reserve", "cars/#", ("operations",)))
    kept.audit(AuditRecord(1.5, "", "x", "reserve", "cars/#", (), (), "the user may not reserve this"))
    for number, (user, client, wanted, purpose) in enumerate(
        [
            ("billing", "screen", "cars/+", "operations/billing"),
            ("billing", "screen", "cars/7", "marketing"),
            ("device", "screen", "#", ""),
            ("gone", "screen", "#", ""),
        ],
        1,
    ):
        key = number.to_bytes(8, "big")
        record = SessionRecord(user, client, 100, None, None, None)
        subscription = SubscriptionRecord("", RequestedSubscription(wanted), 0, 0, purpose)
        from hushcast_gateway.purposes.records import encode

        ledger.put(SESSION, key, encode(record))
        ledger.put(SUBSCRIPTION, key + wanted.encode(), encode(subscription))
    store = SqliteStore(tmp_path / "state" / DATABASE)
    store._commit(Commit(Change(*change) for change in ledger.take()))
    store.close()


async def test_why_a_client_gets_something_or_not(tmp_path: Path) -> None:
    config = written(tmp_path)
    await filled(tmp_path)
    outcome = await hushcast(
        "gateway", "purpose", "explain", "screen", "cars/7", "--config", config, "--json"
    )
    assert [(one["user"], one["filter"], one["allowed"]) for one in outcome.objects] == [
        ("billing", "cars/+", True),
        ("billing", "cars/7", False),  # it may not claim marketing any more
        ("device", "#", True),
        ("gone", "#", False),
    ]
    assert outcome.objects[0]["because"] == "car's reservation of cars/# allows operations"
    assert outcome.objects[3]["because"] == "the configuration has no such user"
    supposed = await hushcast(
        *("gateway", "purpose", "explain", "any", "cars/7", "--config", config),
        *("--user", "billing", "--purpose", "operations/billing"),
    )
    assert supposed.stdout.decode() == (
        "billing, supposed, for operations/billing: allowed, because car's reservation of cars/# allows "
        "operations\n"
    )


async def test_what_is_reserved_is_listed(tmp_path: Path) -> None:
    config = written(tmp_path, '[[purposes.reservation]]\nfilter = "home/#"\npip = ["marketing"]')
    empty = await hushcast("gateway", "purpose", "list", "--user", "car", "--config", config)
    assert (empty.code, empty.stdout, empty.stderr.strip()) == (0, b"", "note: nothing is reserved")
    await filled(tmp_path)
    outcome = await hushcast("gateway", "purpose", "list", "--config", config)
    assert outcome.stdout.decode().splitlines() == [
        "car reserves cars/# for operations",
        "gone reserves attic/7 for nothing (there is no such user any more)",
        "gone reserves home/# for operations, not for marketing (there is no such user any more)",
        "the configuration reserves home/# for nothing, not for marketing",
    ]
    gone = await hushcast("gateway", "purpose", "list", "--user", "gone", "--config", config, "--json")
    assert gone.objects == [
        {"owner": "gone", "filter": "attic/7", "aip": [], "pip": [], "gone": True},
        {"owner": "gone", "filter": "home/#", "aip": ["operations"], "pip": ["marketing"], "gone": True},
    ]


async def test_the_doctor_tells_of_users_that_are_gone(tmp_path: Path) -> None:
    config = written(tmp_path)
    await filled(tmp_path)
    outcome = await hushcast("doctor", "gateway", "--config", config, "--json")
    (found,) = [one for one in outcome.objects if one["check"] == "reservations of gone"]
    assert found["verdict"] == "warning"
    assert found["found"] == "there is no such user any more, and 2 reservations of theirs"


async def test_a_gateway_that_does_not_run_takes_it_away_when_it_starts(tmp_path: Path) -> None:
    config = written(tmp_path)
    await filled(tmp_path)
    outcome = await hushcast("gateway", "purpose", "drop", "gone", "attic/7", "--config", config, "--json")
    assert outcome.objects == [{"owner": "gone", "filter": "attic/7", "dropped": False}]
    assert outcome.stderr.strip() == "note: the gateway takes it away when it starts"
    left = await hushcast("gateway", "purpose", "list", "--user", "gone", "--config", config, "--json")
    assert [one["filter"] for one in left.objects] == ["home/#"]
    more = await hushcast("gateway", "purpose", "drop", "gone", "--config", config)
    assert more.code == 2
    assert "has not taken away yet" in more.error


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nobody"], "nobody reserved nothing"),
        (["car", "cars/8"], "car reserved nothing for cars/8"),
        (["the configuration"], "taken out there"),
    ],
)
async def test_what_is_not_there_is_not_dropped(tmp_path: Path, arguments: list[str], told: str) -> None:
    config = written(tmp_path)
    await filled(tmp_path)
    outcome = await hushcast("gateway", "purpose", "drop", *arguments, "--config", config)
    assert outcome.code == 2
    assert told in outcome.error


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nobody", "cars/7"], "suppose one with --user"),
        (["screen", "cars/#"], "without wildcards"),
        (["screen", "cars/7", "--purpose", "marketing"], "--user"),
        (["screen", "cars/7", "--user", "billing", "--purpose", "marketing"], "may not claim marketing"),
        (["screen", "cars/7", "--user", "billing", "--purpose", "marketin"], "did you mean marketing"),
    ],
)
async def test_questions_without_an_answer(tmp_path: Path, arguments: list[str], told: str) -> None:
    config = written(tmp_path)
    outcome = await hushcast("gateway", "purpose", "explain", *arguments, "--config", config)
    assert outcome.code == 2
    assert told in outcome.error


async def test_the_audit_log(tmp_path: Path) -> None:
    config = written(tmp_path)
    empty = await hushcast("gateway", "purpose", "audit", "--config", config)
    assert (empty.code, empty.stdout) == (0, b"")
    await filled(tmp_path)
    outcome = await hushcast("gateway", "purpose", "audit", "--config", config)
    assert outcome.stdout.decode() == (
        "1970-01-01T00:00:00Z car (c7) reserves cars/# for operations\n"
        "1970-01-01T00:00:01Z anybody (x) reserves cars/# for nothing: refused, "
        "the user may not reserve this\n"
    )
    last = await hushcast("gateway", "purpose", "audit", "--config", config, "--last", "1", "--json")
    (entry,) = last.objects
    assert entry["refused"] == "the user may not reserve this"


async def test_check_config_shows_purposes_and_refuses_strangers(tmp_path: Path) -> None:
    config = written(tmp_path, '[[purposes.reservation]]\nfilter = "cars/#"\naip = ["operations"]')
    outcome = await hushcast("admin", "check-config", "--show", config, "--json")
    (said,) = outcome.objects
    assert said["purposes"] == [
        "decided for each message, by a cached store; the unreserved is for everybody",
        f"vocabulary: 3 purposes, {tmp_path}/vocabulary",
        "cars/#: for operations",
        "car: may reserve cars/#",
        "billing: may claim operations/billing",
        "device: subscribes for operations",
    ]
    (tmp_path / "vocabulary").write_text("marketing\n")
    outcome = await hushcast("admin", "check-config", "--show", config)
    assert outcome.code == 2
    assert "purposes.reservation #1.aip: 'operations' is not in the vocabulary" in outcome.error
    (tmp_path / "vocabulary").unlink()
    for command in (["check-config", config], ["run", "--config", config]):
        outcome = await hushcast("gateway", *command)
        assert outcome.code == 2
        assert "cannot be read" in outcome.error


async def test_doctor_finds_what_is_missing(tmp_path: Path) -> None:
    config = written(tmp_path)
    (tmp_path / "vocabulary").write_text("marketing\noperations/routing\n")
    outcome = await hushcast("doctor", "gateway", "--config", config, "--json")
    found = {one["check"]: one for one in outcome.objects}
    assert found["users.billing.purposes #1"]["verdict"] == "bad"
    assert "not in the vocabulary" in found["users.billing.purposes #1"]["found"]
    assert "users.device.purpose" not in found
    (tmp_path / "vocabulary").unlink()
    outcome = await hushcast("doctor", "gateway", "--config", config, "--json")
    (finding,) = [one for one in outcome.objects if one["check"] == "vocabulary"]
    assert finding["verdict"] == "bad"


@pytest.mark.parametrize(
    ("granted", "found"),
    [
        ("operations", []),
        ("operations/billing", ["device may read for operations"]),
        ("marketing", ["billing may read for operations/billing", "device may read for operations"]),
    ],
)
async def test_doctor_finds_what_nobody_granted(tmp_path: Path, granted: str, found: list[str]) -> None:
    config, key, issuer = written(tmp_path), tmp_path / "reader.key", tmp_path / "issuer"

    async def told(*arguments: object) -> dict[str, object]:
        (line,) = (await hushcast("purpose", *map(str, arguments), "--json")).objects
        return line

    reader = (await told("key", "new", key))["reader"]
    public = (await told("vocabulary", "new", issuer, tmp_path / "vocabulary"))["issuer"]
    grant = (await told("grant", issuer, "--to", reader, "--for", granted))["file"]
    config.write_text(
        config.read_text().replace('subscribe = ["cars/#"]', 'subscribe = ["hush/cars/#"]')
        + f'''
[daemon]
socket = "/s"
[[gateway.alias]]
name = "cars"
link_file = "/l"
[gateway.alias.keys]
vocabulary_file = "{issuer}/vocabulary"
issuer = "{public}"
reader_key_file = "{key}"
grant_files = ["{grant}"]
'''
    )
    outcome = await hushcast("doctor", "gateway", "--config", config, "--json")
    warnings = [one["found"] for one in outcome.objects if one["check"] == "grants of cars"]
    assert warnings == [f"{one}, and nobody granted that" for one in found]
    (said,) = (await hushcast("admin", "check-config", "--show", config, "--json")).objects
    assert said["travels"] == ["hush/cars/…, sealed for purposes"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("vocabulary =", "vocabulari ="), "vocabulary"),
        (('mode = "publish"', 'mode = "never"'), "mode"),
        (('"operations/billing"', '""'), "users.billing.purposes"),
        (('reserve = ["cars/#"]', 'reserve = ["a/#/b"]'), "users.car.reserve #1"),
        (('purpose = "operations"', 'may_presubscribe = ["screen"]'), "USER/CLIENT"),
        (('purpose = "operations"', 'may_presubscribe = ["nobody/screen"]'), "no user nobody"),
        (("[purposes]\nvocabulary", "[log]\nvocabulary"), "vocabulary"),
    ],
)
async def test_configurations_that_cannot_be_used(tmp_path: Path, change: tuple[str, str], told: str) -> None:
    config = written(tmp_path, 'mode = "publish"')
    config.write_text(config.read_text().replace(*change))
    outcome = await hushcast("admin", "check-config", "--show", config)
    assert outcome.code == 2
    assert told in outcome.error


async def test_purposes_of_users_need_the_section(tmp_path: Path) -> None:
    config = written(tmp_path)
    text = config.read_text()
    config.write_text(text.replace(f'[purposes]\nvocabulary = "{tmp_path}/vocabulary"\n', ""))
    outcome = await hushcast("admin", "check-config", "--show", config)
    assert "add it" in outcome.error
