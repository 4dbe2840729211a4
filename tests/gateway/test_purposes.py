"""Purposes in a gateway: who gets what, by reservations and subscriptions of real sessions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import trio
from memory_gateway import running
from purposes_house import ALL, USERS, VOCABULARY, House, Reader, house, settings
from trio.testing import MockClock

from hushcast_gateway.purposes import audit_log as audit_module
from hushcast_gateway.purposes import purpose_state as kept_module
from hushcast_gateway.purposes import suspensions as resting_module
from hushcast_gateway.purposes.records import AUDIT, AuditRecord, read_audit
from hushcast_gateway.purposes.registrations import MAX_REGISTERED
from hushcast_gateway.purposes.rules import Purposes
from hushcast_gateway.purposes.suspension_notices import TOPIC
from hushcast_gateway.sections.purposes_section import strangers
from hushcast_gateway.settings import GatewaySettings
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.wire.packets import V5, V311, Disconnect, Will
from hushcast_protocol.purposes import filter_reach
from hushcast_protocol.purposes.vocabulary import Vocabulary
from hushcast_runtime.processes.config import parse_settings
from hushcast_runtime.storage.store import MemoryStore

POSITION = "cars/car/position"
REGISTERS = "$DAP/purpose_management"


async def noted(store: MemoryStore) -> list[AuditRecord]:
    return [read_audit(value) for _, value in await store.scan(AUDIT)]


@pytest.mark.parametrize("version", [V311, V5])
@pytest.mark.parametrize("store", ["flat", "tree", "cached"])
async def test_the_example_of_the_paper(autojump_clock: MockClock, store: str, version: int) -> None:
    async with house(f'store = "{store}"') as place:
        car = await place.connect("car", version=version)
        billing, advertiser = (
            await place.connect("billing", version=version),
            await place.connect("advertiser"),
        )
        nobody = await place.connect("stranger")
        assert await car.reserve("cars/car/#", "operations,marketing", "marketing/individualized") == 0
        assert await billing.subscribe("!AP/cars/PLUS/position{operations/billing}") == 1
        assert await advertiser.subscribe("cars/#", ap="marketing/individualized") == 1
        assert await nobody.subscribe("#") == 1
        await car.publish(POSITION, b"1")
        await car.publish("weather", b"2")
        assert await billing.got() == [b"1"]
        assert await advertiser.got() == []
        assert await nobody.got() == [b"2"]
        assert await advertiser.subscribe("cars/#", ap="marketing/newsletter") == 1
        await car.publish(POSITION, b"3")
        assert await advertiser.got() == [b"3"]


@pytest.mark.parametrize(("version", "told"), [(V5, Reason.NOT_AUTHORIZED), (V311, 0x80)])
@pytest.mark.parametrize(
    "wanted", ["!AP/t{research}", "!AP/t{operations}", "!AP/t{no/such}", "!AP/t{No Such}"]
)
async def test_a_claim_that_is_not_allowed_is_refused(
    autojump_clock: MockClock, wanted: str, version: int, told: int
) -> None:
    store = MemoryStore()
    async with house(store=store) as place:
        billing = await place.connect("billing", version=version)
        assert await billing.subscribe(wanted) == told
        assert place.broker.subscriptions == 0
        await trio.sleep(1.5)
        (entry,) = await noted(store)
        assert (entry.user, entry.what, entry.filter) == ("billing", "subscribe", "t")
        assert entry.refused


async def test_purposes_by_properties(autojump_clock: MockClock) -> None:
    async with house() as place:
        car, billing = await place.connect("car"), await place.connect("billing", ap="operations/billing")
        given = [("aip", "operations,marketing"), ("pip", "marketing/individualized")]
        assert await car.publish("!RESERVE/cars/car/HASH", user_property=given) == 0
        assert await billing.subscribe("cars/#") == 1  # by what CONNECT says
        advertiser = await place.connect("advertiser")
        assert await advertiser.subscribe("cars/#", ap="marketing") == 1
        await car.publish(POSITION, b"1")
        assert [await one.got() for one in (billing, advertiser)] == [[b"1"], [b"1"]]
        removed = [("reserve", "remove")]
        assert await car.publish("!RESERVE/cars/car/HASH", user_property=removed) == 0
        assert place.rules.reserved == 0
        refused = await place.connect("advertiser", "other", ap="operations")
        assert await refused.subscribe("cars/#") == Reason.NOT_AUTHORIZED
        assert await refused.subscribe("cars/#", ap="marketing") == 1


async def test_the_names_of_mqtt_dap_mean_the_same(autojump_clock: MockClock) -> None:
    async with house() as place:
        car, billing, advertiser = [await place.connect(name) for name in ("car", "billing", "advertiser")]
        assert await car.publish(REGISTERS, user_property=[("DAP-MP", "operations:cars/car/#")]) == 0
        for client, purpose in ((billing, "operations/billing"), (advertiser, "marketing")):
            assert await client.subscribe("cars/#", user_property=[("DAP-SP", purpose)]) == 1
        await car.publish(POSITION, b"1")
        assert [await one.got() for one in (billing, advertiser)] == [[b"1"], []]
        await car.publish("t", b"2", user_property=[("DAP-MP", "operations")])
        assert await car.publish("$DAP/anything") == Reason.TOPIC_NAME_INVALID


async def test_what_a_client_registers_is_of_its_own_messages_and_ends_with_it(
    autojump_clock: MockClock,
) -> None:
    async with house() as place:
        one, other = [await place.connect("car", name) for name in ("one", "other")]
        billing, advertiser = [await place.connect(name) for name in ("billing", "advertiser")]
        await billing.subscribe("t", ap="operations/billing")
        await advertiser.subscribe("t", ap="marketing")
        for client, purpose in ((one, "marketing"), (other, "operations"), (one, "operations")):
            assert await client.publish(REGISTERS, user_property=[("DAP-MP", f"{purpose}:t")]) == 0
        await one.publish("t", b"1")
        assert await other.publish(REGISTERS, user_property=[("DAP-MP", "marketing:t")]) == 0
        await other.publish("t", b"2")
        await other.publish("t", b"3", user_property=[("aip", "operations")])
        assert await other.publish(REGISTERS, user_property=[("DAP-MP", ":t")]) == 0
        await other.publish("t", b"4")
        again = await place.connect("car", "other")
        await again.publish("t", b"5")
        assert place.rules.reserved == 0
        assert await billing.got() == [b"1", b"3", b"5"]
        assert await advertiser.got() == [b"2", b"5"]


async def test_registrations_that_mean_nothing_or_are_too_many_are_refused(autojump_clock: MockClock) -> None:
    async with house() as place:
        car = await place.connect("car")
        unknown = [("DAP-MP", "operatoins:t")]
        assert await car.publish(REGISTERS, user_property=unknown) == Reason.IMPLEMENTATION_SPECIFIC_ERROR
        reasons = [
            await car.publish(REGISTERS, user_property=[("DAP-MP", f"operations:t/{number}")])
            for number in [*range(MAX_REGISTERED + 1), 0]
        ]
        assert reasons == [0] * MAX_REGISTERED + [Reason.QUOTA_EXCEEDED, 0]


async def test_a_message_says_itself_what_it_is_for_and_only_narrows(autojump_clock: MockClock) -> None:
    async with house() as place:
        owner, car = await place.connect("owner"), await place.connect("car")
        billing, advertiser = await place.connect("billing"), await place.connect("advertiser")
        nobody = await place.connect("stranger")
        await billing.subscribe("#", ap="operations/billing")
        await advertiser.subscribe("#", ap="marketing")
        await nobody.subscribe("#")
        await car.publish("t", b"1", user_property=[("aip", "marketing")])
        await car.publish("t", b"2", user_property=[("pip", "marketing")])
        await owner.reserve("cars/#", "operations")
        await car.publish(POSITION, b"3", user_property=[("aip", "marketing,operations")])
        await car.publish(POSITION, b"4", user_property=[("aip", "")])
        await car.publish(POSITION, b"5", user_property=[("other", "kept")])
        assert await billing.got() == [b"2", b"3", b"5"]
        assert await advertiser.got() == [b"1"]
        assert await nobody.got() == []
        for wrong in ([("aip", "no/such")], [("pip", "a,,b")], [("reserve", "t")]):
            assert await car.publish("t", user_property=wrong) == Reason.IMPLEMENTATION_SPECIFIC_ERROR
        assert await billing.got() == []


async def test_a_message_with_terms_that_nobody_can_read_goes_to_nobody(autojump_clock: MockClock) -> None:
    async with house() as place:
        billing = await place.connect("billing")
        await billing.subscribe("#", ap="operations/billing")
        given: Any = {"user_property": [("aip", "no/such")]}
        place.broker.arrived("t", b"1", 1, False, given, 1_000_000.0)
        place.broker.arrived("t", b"2", 1, False, {"user_property": [("aip", "operations")]}, 1_000_000.0)
        assert await billing.got() == [b"2"]


# Faults of the published program (numbers as in its review): 3, 8, 9 and 10.


@pytest.mark.parametrize("mode", ["publish", "subscribe", "hybrid"])
async def test_fault_3_a_plain_subscription_made_before_gets_nothing_reserved(
    autojump_clock: MockClock, mode: str
) -> None:
    async with house(f'mode = "{mode}"') as place:
        reader, car = await place.connect("stranger"), await place.connect("car")
        assert await reader.subscribe("#") == 1
        await car.publish(POSITION, b"1")
        await car.reserve("cars/car/#", "operations")
        await car.publish(POSITION, b"2")
        assert await reader.got() == [b"1"]
        await car.publish("weather", b"3")
        assert await reader.got() == ([] if mode == "subscribe" else [b"3"])
        await car.release("cars/car/#")
        await car.publish(POSITION, b"4")
        assert await reader.got() == [b"4"]


@pytest.mark.parametrize(
    "command",
    [
        "!RESERVE/cars/other/HASH{operations}",
        "!RESERVE/HASH{operations}",
        "!RESERVE/cars/other/HASH{!}",
        "!PBAC/PRESUB/screen/cars/HASH{operations}",
        "!PBAC/SET/filter_on_publish",
        "!PBAC/TREE",
    ],
)
@pytest.mark.parametrize("version", [V311, V5])
async def test_fault_8_who_may_not_commands_nothing(
    autojump_clock: MockClock, command: str, version: int
) -> None:
    store = MemoryStore()
    async with house(store=store) as place:
        car, owner = await place.connect("car", version=version), await place.connect("owner")
        assert await owner.reserve("cars/#", "operations") == 0
        billing = await place.connect("billing")
        await billing.subscribe("cars/#", ap="operations/billing")
        told = await car.publish(command, b"false")
        assert told == (0 if version == V311 else Reason.NOT_AUTHORIZED if "TREE" not in command else 0x90)
        assert place.rules.reserved == 1
        await owner.publish(POSITION, b"1")
        assert await billing.got() == [b"1"]
        await trio.sleep(1.5)
        assert [bool(one.refused) for one in await noted(store)] == [False, True]


async def test_a_strangers_reservation_only_narrows(autojump_clock: MockClock) -> None:
    async with house() as place:
        car, stranger = await place.connect("car"), await place.connect("stranger")
        advertiser = await place.connect("advertiser")
        await car.reserve("cars/car/#", "operations")
        assert await stranger.reserve("#", "marketing") == 0
        assert await stranger.release("cars/car/#") == 0
        await advertiser.subscribe("#", ap="marketing")
        await car.publish(POSITION, b"1")
        await car.publish("weather", b"2")
        assert await advertiser.got() == [b"2"]


@pytest.mark.parametrize("version", [V311, V5])
async def test_fault_9_commands_are_delivered_to_nobody(autojump_clock: MockClock, version: int) -> None:
    async with house() as place:
        readers = [await place.connect("owner", f"r{n}") for n in range(4)]
        for reader, wanted in zip(readers, ("#", "+/cars/#", "!RESERVE/#", "$share/g/#"), strict=True):
            await reader.subscribe(wanted)
        will = Will("!RESERVE/cars/car{operations}", b"")
        car = await place.connect("car", version=version, will=will)
        for topic in (
            "!RESERVE/cars/car/HASH{operations}",
            "!AP/t{research}",
            "!AIP/t{}",
            "!PBAC/CLEAR",
            "!PBAC",
        ):
            await car.publish(topic, b"x", retain=True)
        await car.leave()
        await trio.sleep(0.1)
        assert [await reader.got() for reader in readers] == [[], [], [], []]
        assert place.broker.retained == 0
        assert place.rules.reserved == 0


async def withdrawn(place: Any, car: Reader) -> None:
    assert await car.reserve("cars/car/#", "") == 0


@pytest.mark.parametrize("mode", ["publish", "subscribe", "hybrid"])
async def test_fault_10_consent_withdrawn_while_a_client_is_away(
    autojump_clock: MockClock, mode: str
) -> None:
    async with house(f'mode = "{mode}"') as place:
        car, billing = await place.connect("car"), await place.connect("billing", clean=False, expiry=100)
        await car.reserve("cars/car/#", "operations")
        assert await billing.subscribe("cars/car/#", ap="operations/billing") == 1
        await billing.leave()
        await trio.sleep(0.1)
        await car.publish(POSITION, b"1")
        await withdrawn(place, car)
        back = await place.connect("billing", clean=False, expiry=100)
        assert await back.got() == []
        await car.reserve("cars/car/#", "operations")
        await car.publish(POSITION, b"2")
        assert await back.got() == [b"2"]


async def test_fault_10_consent_withdrawn_while_retained(autojump_clock: MockClock) -> None:
    async with house() as place:
        car, billing = await place.connect("car"), await place.connect("billing")
        await car.reserve("cars/car/#", "operations")
        await car.publish(POSITION, b"1", retain=True)
        await billing.subscribe("cars/#", ap="operations/billing")
        assert await billing.got() == [b"1"]
        await withdrawn(place, car)
        await billing.subscribe("cars/#", ap="operations/billing")
        assert await billing.got() == []


async def test_fault_10_consent_withdrawn_while_owed_to_a_shared_group(autojump_clock: MockClock) -> None:
    async with house() as place:
        car = await place.connect("car")
        members = [await place.connect("billing", f"b{n}", clean=False, expiry=100) for n in range(2)]
        for member in members:
            await member.subscribe("$share/g/!AP/cars/HASH{operations/billing}")
        await car.reserve("cars/car/#", "operations")
        for member in members:
            await member.leave()
        await trio.sleep(0.1)
        await car.publish(POSITION, b"1")
        await withdrawn(place, car)
        for n in range(2):
            back = await place.connect("billing", f"b{n}", clean=False, expiry=100)
            assert await back.got() == []


async def test_fault_10_members_that_may_not_starve_nobody(autojump_clock: MockClock) -> None:
    async with house() as place:
        car, billing, advertiser = [await place.connect(name) for name in ("car", "billing", "advertiser")]
        await car.reserve("cars/car/#", "operations")
        await advertiser.subscribe("$share/g/cars/#", ap="marketing")
        await billing.subscribe("$share/g/cars/#", ap="operations/billing")
        for n in range(6):
            await car.publish(POSITION, b"%d" % n)
        assert len(await billing.got()) == 6
        assert await advertiser.got() == []


# Clients that cannot change, presubscriptions, configuration.


async def test_a_users_default_purpose_and_a_configured_reservation(autojump_clock: MockClock) -> None:
    section = '[[purposes.reservation]]\nfilter = "cars/#"\naip = ["operations"]\n'
    async with house(section) as place:
        device, nobody, car = [
            await place.connect(name, version=V311) for name in ("device", "stranger", "car")
        ]
        await device.subscribe("#")
        await nobody.subscribe("#")
        await car.publish(POSITION, b"1")
        assert [await one.got() for one in (device, nobody)] == [[b"1"], []]
        await car.release("cars/#")
        await car.publish("!PBAC/CLEAR")
        await car.reserve("cars/car/#", "marketing")
        await car.publish(POSITION, b"2")
        assert [await one.got() for one in (device, nobody)] == [[], []]


async def test_strict_gives_nobody_what_nobody_reserved(autojump_clock: MockClock) -> None:
    async with house("strict = true") as place:
        billing, car = await place.connect("billing"), await place.connect("car")
        await billing.subscribe("#", ap="operations/billing")
        await car.publish("weather", b"1")
        await car.reserve("cars/car/#", "operations")
        await car.publish(POSITION, b"2")
        assert await billing.got() == [b"2"]
        for _ in place.broker.tick(1_000_100.0):
            pass
        assert place.rules.counters["purposes_errors"] == 0


async def test_a_presubscription_for_a_client_of_another_user(autojump_clock: MockClock) -> None:
    async with house() as place:
        owner, car = await place.connect("owner"), await place.connect("car")
        await car.reserve("cars/car/#", "operations")
        screen = await place.connect("billing", "screen", version=V311)
        await screen.subscribe("cars/#")
        # A stranger's client may take the same name.
        namesake = await place.connect("stranger", "screen", version=V311)
        await namesake.subscribe("cars/#")
        assert await owner.publish("!PBAC/PRESUB/screen/cars/HASH{operations}") == 0
        await car.publish(POSITION, b"1")
        assert [await one.got() for one in (screen, namesake)] == [[b"1"], []]
        wrong = "!PBAC/PRESUB/screen/cars/HASH{marketing}"
        assert await owner.publish(wrong) == Reason.NOT_AUTHORIZED
        assert await owner.publish("!PBAC/PRESUB/other/cars/HASH{operations}") == 0  # its own other client
        assert await owner.publish("!PBAC/PRESUB/screen/cars/HASH{!}") == 0
        await car.publish(POSITION, b"2")
        assert await screen.got() == []


async def test_another_configuration_takes_claims_away(autojump_clock: MockClock) -> None:
    async with house() as place:
        car, billing, device = [await place.connect(name) for name in ("car", "billing", "device")]
        await car.reserve("cars/car/#", "operations")
        await billing.subscribe("cars/#", ap="operations/billing")
        await device.subscribe("cars/#")
        await car.publish(POSITION, b"1")
        reload(place, users=USERS.replace('["operations/billing"]', "[]"))
        await car.publish(POSITION, b"2")
        assert [await one.got() for one in (billing, device)] == [[b"1"], [b"1", b"2"]]
        reload(place, users="[users.car]\nuid = [1]")
        await car.publish(POSITION, b"3")
        assert [await one.got() for one in (billing, device)] == [[], []]
        assert await car.reserve("cars/car/#", "operations") == Reason.NOT_AUTHORIZED


def reload(place: House, section: str = "", vocabulary: Vocabulary = VOCABULARY, users: str = USERS) -> None:
    """Have the gateway go by another configuration."""
    given = settings(section, users)
    assert given.purposes is not None
    place.rules.replace(given.purposes, given.speakers(), vocabulary)


CONFIGURED = """
[[purposes.reservation]]
filter = "cars/#"
aip = ["{}"]
"""


async def test_another_configuration_reserves_and_is_strict_at_once(autojump_clock: MockClock) -> None:
    async with house(CONFIGURED.format("operations")) as place:
        car, device = await place.connect("car"), await place.connect("device")
        await device.subscribe("#")
        for number, (section, comes) in enumerate(
            [
                (CONFIGURED.format("operations"), True),
                (CONFIGURED.format("marketing"), False),
                ("", True),
                ("strict = true", False),
                ("strict = true" + CONFIGURED.format("operations/routing"), True),
            ]
        ):
            reload(place, section)
            await car.publish(POSITION, str(number).encode())
            assert await device.got() == ([str(number).encode()] if comes else [])
            assert place.rules.reserved == ("reservation" in section)


async def test_another_vocabulary_ends_claims_and_opens_nothing(autojump_clock: MockClock) -> None:
    smaller = Vocabulary([*VOCABULARY.roots, "operations/routing"])
    async with house() as place:
        car, owner, device = [await place.connect(name) for name in ("car", "owner", "device")]
        await car.reserve("cars/car/#", "operations", "operations/billing")
        await owner.subscribe("cars/#", ap="operations/routing")
        await device.subscribe("cars/#")
        owner_again = await place.connect("owner", "again")
        assert await owner_again.subscribe("cars/#", ap="operations/billing") == 1
        with pytest.raises(UsageError, match=r"not in the vocabulary|aip"):
            reload(place, CONFIGURED.format("operations/billing"), smaller)
        assert "operations/billing" in place.rules.vocabulary, "nothing has changed"
        reload(place, "", smaller, USERS.replace('["operations/billing"]', '["operations"]'))
        await car.publish(POSITION, b"1")
        # What was prohibited below a purpose stays so; who claimed what is gone has no purpose.
        assert [await one.got() for one in (owner, device, owner_again)] == [[b"1"], [b"1"], []]
        assert await owner.subscribe("cars/#", ap="operations/billing") == Reason.NOT_AUTHORIZED


# On disk.


async def test_rules_survive_a_restart(autojump_clock: MockClock) -> None:
    store = MemoryStore()
    async with house(store=store) as place:
        car, owner = await place.connect("car"), await place.connect("owner")
        billing = await place.connect("billing", clean=False, expiry=100)
        await car.reserve("cars/car/#", "operations", "operations/routing")
        await car.reserve("cars/car", "marketing")
        await car.release("cars/car")
        await owner.publish("!PBAC/PRESUB/screen/cars/HASH{operations}")
        await billing.subscribe("cars/#", ap="operations/billing")
    async with house(store=store) as place:
        assert place.rules.reserved == 1
        car, device = await place.connect("car"), await place.connect("device")
        screen = await place.connect("billing", "screen")
        billing = await place.connect("billing", clean=False, expiry=100)
        await screen.subscribe("cars/#")
        await device.subscribe("cars/#")
        await car.publish(POSITION, b"1")
        assert [await one.got() for one in (billing, screen, device)] == [[b"1"], [b"1"], []]
        await trio.sleep(1.5)
        assert [one.what for one in await noted(store)] == ["reserve", "reserve", "release", "presubscribe"]
        await car.publish("!PBAC/RESET")
        assert place.rules.reserved == 0
    async with house(store=store) as place:
        assert place.rules.reserved == 0


async def test_a_reservation_is_on_disk_before_it_is_acknowledged(autojump_clock: MockClock) -> None:
    store = MemoryStore()
    async with house(store=store) as place:
        car = await place.connect("car")
        assert await car.reserve("cars/car/#", "operations") == 0
        assert len(await store.scan("purpose-reservation")) == 1


async def test_bounds(autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_module, "MAX_DONE", 3)
    monkeypatch.setattr(audit_module, "MAX_REFUSED", 2)
    monkeypatch.setattr(kept_module, "MAX_PRESUBSCRIPTIONS", 1)
    store = MemoryStore()
    async with house(store=store) as place:
        car, owner = await place.connect("car"), await place.connect("owner")
        for n in range(5):
            await car.reserve(f"cars/car/{n}", "operations")
        for n in range(4):
            for _ in range(3):
                assert await car.reserve(f"cars/{n}", "operations") == Reason.NOT_AUTHORIZED
        assert await owner.publish("!PBAC/PRESUB/a/t{operations}") == 0
        assert await owner.publish("!PBAC/PRESUB/b/t{operations}") == Reason.QUOTA_EXCEEDED
        await trio.sleep(1.5)
        entries = await noted(store)
        assert [one.filter for one in entries if not one.refused] == ["cars/car/3", "cars/car/4", "t"]
        assert [one.filter for one in entries if one.refused] == ["cars/3", "t"]


async def test_a_refusal_that_is_long_is_noted_in_short(autojump_clock: MockClock) -> None:
    store = MemoryStore()
    async with house(store=store) as place:
        car = await place.connect("car")
        long = "/".join(["x" * 32] * 8)
        given = [("aip", ",".join([long] * 12)), ("pip", "y" * 3_000)]
        assert await car.publish("!RESERVE/" + "a" * 4_000, user_property=given) == Reason.NOT_AUTHORIZED
        assert await car.subscribe("b" * 1_024, ap="p" * 5_000) == Reason.NOT_AUTHORIZED
        await trio.sleep(1.5)
        reserved, subscribed = await noted(store)
        assert (len(reserved.filter), len(reserved.aip), len(reserved.pip[0])) == (1_024, 8, 264)
        assert (len(subscribed.filter), len(subscribed.aip[0])) == (1_024, 264)


async def test_an_error_in_the_rules_delivers_nothing(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house() as place:
        car, billing = await place.connect("car"), await place.connect("billing")
        await billing.subscribe("cars/#", ap="operations/billing")
        await car.publish(POSITION, b"0")

        def fail(*anything: object) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr(place.rules.kept.reservations, "decide", fail)
        await car.reserve("cars/car/#", "operations")
        await car.publish(POSITION, b"1")
        assert await billing.got() == [b"0"]
        assert place.rules.counters["purposes_errors"] == 1


# Modes


async def test_on_subscribe_a_whole_subscription_is_refused_or_rests(autojump_clock: MockClock) -> None:
    async with house('mode = "subscribe"') as place:
        car, billing = await place.connect("car"), await place.connect("billing")
        await car.reserve("cars/car/secret", "marketing")
        assert await billing.subscribe("cars/#", ap="operations/billing") == Reason.NOT_AUTHORIZED
        assert await billing.subscribe("cars/car/position", ap="operations/billing") == 1
        await billing.subscribe(TOPIC)
        await car.reserve("cars/car/#", "marketing")
        await car.publish(POSITION, b"1")
        assert await billing.messages() == []
        await trio.sleep(1.1)
        (told,) = await billing.messages()
        assert told.topic == TOPIC
        assert json.loads(told.payload) == {
            "filter": POSITION,
            "group": "",
            "purpose": "operations/billing",
            "paused": True,
        }
        assert place.rules.resting == 1
        await car.reserve("cars/car/#", "operations")
        await car.publish(POSITION, b"2")
        await trio.sleep(1.1)
        message, told = await billing.messages()
        assert message.payload == b"2"
        assert not json.loads(told.payload)["paused"]


async def test_many_changes_of_what_a_wide_subscription_matches_are_decided_once(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    decided = []

    def counted(*about: Any) -> Any:
        decided.append(about)
        return filter_reach.FilterReach(*about)

    monkeypatch.setattr(resting_module, "MAX_KNOWN", 1)
    monkeypatch.setattr(resting_module, "FilterReach", counted)
    async with house('mode = "subscribe"') as place:
        car, billing = await place.connect("car"), await place.connect("billing")
        await billing.subscribe("cars/car/#", ap="operations/billing")
        await car.reserve("cars/car/#", "operations")
        await billing.subscribe("cars/+/+", ap="operations/billing")
        decided.clear()
        for n in range(20):
            await car.reserve(f"cars/car/{n}", "operations")
        assert decided == []
        await car.publish("cars/car/7", b"1")
        assert await billing.got() == [b"1"]
        assert len(decided) == 2
        await trio.sleep(1.1)
        assert len(decided) == 2


async def test_hybrid_refuses_what_would_get_nothing_and_filters_the_rest(autojump_clock: MockClock) -> None:
    async with house('mode = "hybrid"') as place:
        car, billing = await place.connect("car"), await place.connect("billing")
        await car.reserve("cars/car/secret", "marketing")
        assert await billing.subscribe("cars/car/secret", ap="operations/billing") == Reason.NOT_AUTHORIZED
        assert await billing.subscribe("cars/#", ap="operations/billing") == 1
        await car.publish("cars/car/secret", b"1")
        await car.publish(POSITION, b"2")
        assert await billing.got() == [b"2"]


async def test_who_comes_back_is_told_what_rests(autojump_clock: MockClock) -> None:
    async with house('mode = "hybrid"') as place:
        car, billing = await place.connect("car"), await place.connect("billing", clean=False, expiry=100)
        await billing.subscribe("cars/car/#", ap="operations/billing")
        await billing.leave()
        await trio.sleep(0.1)
        await car.reserve("cars/car/#", "marketing")
        await trio.sleep(1.1)
        back = await place.connect("billing", clean=False, expiry=100)
        await back.subscribe(TOPIC)
        (told,) = await back.messages()
        assert json.loads(told.payload)["filter"] == "cars/car/#"
        other = await place.connect("advertiser")
        await other.subscribe(TOPIC)
        assert await other.messages() == []


@pytest.mark.parametrize("version", [V311, V5])
async def test_paused_by_a_reason(autojump_clock: MockClock, version: int) -> None:
    async with house('mode = "subscribe"\npaused = "reason"') as place:
        car, billing = await place.connect("car"), await place.connect("billing", version=version)
        wanted = "!AP/cars/car/HASH{operations/billing}"
        assert await billing.subscribe(wanted) == 1
        await car.reserve("cars/car/#", "marketing")
        end = await billing.client.next()
        assert end == (Disconnect(Reason.ADMINISTRATIVE_ACTION) if version == V5 else None)
        back = await place.connect("billing", version=version)
        assert await back.subscribe(wanted) == (Reason.NOT_AUTHORIZED if version == V5 else 0x80)
        await car.publish(POSITION, b"1")
        assert await back.got() == []


# Asking


async def test_who_may_read_is_told_the_purposes_in_force(autojump_clock: MockClock) -> None:
    async with house(
        users=USERS.replace(ALL, 'publish = ["#"]\nsubscribe = ["cars/#", "!PBAC/#"]\n')
    ) as place:
        car = await place.connect("car")
        await car.subscribe("!PBAC/#")
        await car.reserve("cars/car/#", "operations", "operations/routing")
        assert await car.publish("!PBAC/CRES/cars/car/x") == 0
        assert await car.got() == [b"{operations,operations/billing}"]
        assert await car.publish("!PBAC/ARES/cars/HASH") == 0
        assert await car.got() == [b"{operations,operations/billing}"]
        assert await car.publish("!PBAC/CRES/elsewhere") == Reason.NOT_AUTHORIZED


async def test_what_the_published_client_sets_is_what_the_configuration_says(
    autojump_clock: MockClock,
) -> None:
    async with house() as place:
        car = await place.connect("car")
        assert await car.publish("!PBAC/SET/filter_on_publish", b"true") == 0
        assert await car.publish("!PBAC/SET/filter_on_publish", b"false") == Reason.NOT_AUTHORIZED
        assert await car.publish("!PBAC/PERSIST") == 0
        assert await car.publish("!PBAC/RELOAD") == 0


def test_the_example_of_the_page_can_be_used() -> None:
    page = Path(__file__).parents[2] / "docs" / "purposes.md"
    example = page.read_text().partition("<!-- example: purposes -->\n```toml\n")[2].partition("```")[0]
    given = parse_settings(example.encode(), "gateway.toml", GatewaySettings)
    assert given.purposes is not None
    Purposes(given.purposes, given.speakers(), VOCABULARY, lambda: 0.0)
    assert not list(strangers(VOCABULARY, given.named_purposes()))


async def test_without_the_section_topics_with_an_exclamation_mark_are_topics(
    autojump_clock: MockClock,
) -> None:
    async with running() as gateway:
        client = Reader(await gateway.connect())
        assert await client.subscribe("!RESERVE/#") == 1
        await client.publish("!RESERVE/t{x}", b"1")
        assert b"1" in await client.got()
