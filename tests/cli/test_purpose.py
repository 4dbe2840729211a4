"""`hushcast purpose`: vocabularies and grants from files to files, and what is said of bad ones."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from hushcast.purposes.purpose_files import read_reader
from hushcast_cli.main import run
from hushcast_cli.purposes import issuer_folder
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.purposes.grants import read_grant
from hushcast_protocol.purposes.key_cover import cover
from hushcast_protocol.purposes.purpose_keys import EPOCH_SECONDS
from hushcast_protocol.purposes.purpose_names import Purpose
from hushcast_protocol.purposes.purpose_problems import PurposeError
from hushcast_protocol.purposes.sealed_messages import Opener, Sealer

PURPOSES = "operations/billing\nmarketing/individualized # of one's own\n\nresearch\n"


class Desk:
    """An issuer's folder and a reader's key, and the commands on them."""

    def __init__(self, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capfd = folder, capfd
        self.listed, self.issuer = folder / "purposes.txt", folder / "fleet"
        self.listed.write_text(PURPOSES)
        self.key = folder / "reader.key"
        self.reader = self.told("key", "new", self.key)["reader"]
        self.signed = self.told("vocabulary", "new", self.issuer, self.listed)

    def run(self, *arguments: object) -> tuple[int, str, str]:
        code = run(["purpose", *map(str, arguments)])
        told = self._capfd.readouterr()
        return code, told.out, told.err

    def told(self, *arguments: object) -> dict[str, Any]:
        code, out, _ = self.run(*arguments, "--json")
        assert code == 0
        (line,) = out.splitlines()
        found = json.loads(line)
        assert isinstance(found, dict)
        return found

    def refused(self, *arguments: object, code: int = 2) -> str:
        ended, out, err = self.run(*arguments)
        assert (ended, out) == (code, "")
        (line,) = err.splitlines()
        return line

    def grant(self, purpose: str = "operations", *more: object) -> Path:
        return Path(self.told("grant", self.issuer, "--to", self.reader, "--for", purpose, *more)["file"])

    def check(self, grant: Path, *more: object) -> tuple[object, ...]:
        given = "check", grant, "--key", self.key, "--vocabulary", self.issuer / "vocabulary"
        return (*given, *more)

    def opens(self, grant: Path, *purposes: str) -> bool:
        """Tell whether what is sealed now, by the vocabulary as it is, opens."""
        folder = issuer_folder.load(self.issuer)
        elements = cover(map(Purpose, purposes), [], folder.issued.vocabulary)
        data = Sealer(folder.issued, bytes).seal(elements, b"x", time.time())
        held = read_grant(grant.read_bytes(), read_reader(self.key), folder.seed.public())
        try:
            return Opener([held]).open(data).content == b"x"
        except PurposeError:
            return False


@pytest.fixture
def desk(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Desk:
    return Desk(tmp_path, capfd)


def test_a_reader_opens_what_it_was_granted(desk: Desk) -> None:
    grant = desk.grant("operations", "--weeks", 3, "--as", "dashboard")
    told = desk.told(*desk.check(grant))
    assert (told["purpose"], told["number"], told["problem"]) == ("operations", 1, None)
    assert desk.opens(grant, "operations")
    assert not desk.opens(grant, "operations/billing", "research")
    _, out, _ = desk.run("grants", desk.issuer)
    assert "operations" in out
    assert out.endswith("dashboard\n")


def test_what_is_secret_is_its_owners_alone(desk: Desk) -> None:
    desk.grant()
    for path in (desk.issuer, *desk.issuer.rglob("*"), desk.key):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path
    desk.issuer.chmod(0o755)
    assert "chmod 700" in desk.refused("grants", desk.issuer)
    desk.issuer.chmod(0o700)
    (desk.issuer / "issuer.key").chmod(0o644)
    assert "chmod 600" in desk.refused("grants", desk.issuer)
    desk.key.chmod(0o644)
    (desk.issuer / "issuer.key").chmod(0o600)
    assert "chmod 600" in desk.refused(*desk.check(desk.issuer / "grants" / "1.grant"))


def test_a_vocabulary_is_shown_with_what_it_holds(desk: Desk) -> None:
    told = desk.told("vocabulary", "show", desk.issuer / "vocabulary", "--issuer", desk.signed["issuer"])
    assert told["purposes"] == [
        *("marketing", "marketing/individualized"),
        *("operations", "operations/billing", "research"),
    ]
    assert (told["version"], told["series"], told["problem"]) == (1, 0, None)
    stranger = Seed(b"s" * 32).public().hex()
    line = desk.refused("vocabulary", "show", desk.issuer / "vocabulary", "--issuer", stranger, code=4)
    assert "another issuer" in line


def test_the_next_version_keeps_purposes_and_keys(desk: Desk) -> None:
    grant = desk.grant()
    told = desk.told("vocabulary", "new", desk.issuer, "--weeks", 26)
    assert (told["version"], told["series"], told["issuer"]) == (2, 0, desk.signed["issuer"])
    assert desk.opens(grant, "operations")
    assert desk.told("vocabulary", "new", desk.folder / "w3c", "--dpv")["version"] == 1


def test_a_withdrawn_grant_opens_until_its_last_epoch_or_nothing_any_more(desk: Desk) -> None:
    first, second = desk.grant("operations"), desk.grant("research")
    kept = desk.folder / "kept.grant"
    kept.write_bytes(first.read_bytes())
    assert desk.told("withdraw", desk.issuer, 1)["opens_until"] == desk.signed["until"]
    assert not first.exists()
    assert desk.opens(kept, "operations")
    assert "withdrawn already" in desk.refused("withdraw", desk.issuer, 1)

    old = second.read_bytes()
    kept.write_bytes(old)
    third = desk.grant("marketing")
    assert desk.told("withdraw", desk.issuer, 2, "--at-once") == {
        "number": 2,
        "opens_until": None,
        "series": 1,
    }
    assert not desk.opens(kept, "research")
    assert "old keys" in desk.refused(*desk.check(kept), code=4)
    assert desk.opens(third, "marketing")  # made anew, in its place


@pytest.mark.parametrize("at", ["early", "late"])
def test_out_of_its_time_nothing_can_be_used(desk: Desk, at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    grant, now = desk.grant("operations", "--weeks", 2), time.time()
    there = now + (-EPOCH_SECONDS if at == "early" else 9 * EPOCH_SECONDS)
    monkeypatch.setattr(time, "time", lambda: there)
    problem = "not yet" if at == "early" else "expired"
    assert problem in desk.refused(*desk.check(grant), code=4)
    assert problem in desk.refused("vocabulary", "show", desk.issuer / "vocabulary", code=4)


def test_grants_of_others_are_refused(desk: Desk) -> None:
    grant = desk.grant()
    other = desk.folder / "other.key"
    desk.told("key", "new", other)
    shown = "check", grant, "--vocabulary", desk.issuer / "vocabulary"
    assert "other reader" in desk.refused(*shown, "--key", other, code=4)
    desk.told("vocabulary", "new", desk.folder / "stranger", desk.listed)
    theirs = desk.folder / "stranger" / "vocabulary"
    assert "other issuer" in desk.refused("check", grant, "--key", desk.key, "--vocabulary", theirs, code=4)
    changed = bytearray(grant.read_bytes())
    changed[-1] ^= 1
    grant.write_bytes(changed)
    assert "signature" in desk.refused(*desk.check(grant), code=4)
    grant.write_bytes(changed[:100])
    assert "cut off" in desk.refused(*desk.check(grant), code=4)
    code, out, _ = desk.run(*desk.check(grant, "--json"))
    assert (code, json.loads(out)) == (4, {"problem": "form"})


def test_what_is_mistyped_is_said(desk: Desk) -> None:
    to = "--to", desk.reader
    assert "operations/billing" in desk.refused("grant", desk.issuer, *to, "--for", "operations/biling")
    assert "64 hexadecimal" in desk.refused("grant", desk.issuer, "--to", "abc", "--for", "research")
    assert "reader's key" in desk.refused("grant", desk.issuer, "--to", "00" * 32, "--for", "research")
    assert "more --weeks" in desk.refused("grant", desk.issuer, *to, "--for", "research", "--weeks", 26)
    assert "there is no grant 9" in desk.refused("withdraw", desk.issuer, 9)
    assert "vocabulary new" in desk.refused("grants", desk.folder / "nowhere")
    assert "FILE or --dpv" in desk.refused("vocabulary", "new", desk.folder / "fresh")
    desk.listed.write_text("ok\nNo Purpose\n")
    assert "line 2" in desk.refused("vocabulary", "new", desk.folder / "fresh", desk.listed)
    assert not (desk.folder / "fresh").exists()
    (desk.issuer / "granted.json").write_text('[{"number": "x"}]')
    assert "damaged" in desk.refused("grants", desk.issuer)


def test_an_issuer_makes_so_many_grants(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(issuer_folder, "MAX_REGISTERED", 1)
    desk.grant()
    assert "1 grants at most" in desk.refused("grant", desk.issuer, "--to", desk.reader, "--for", "research")


def test_the_last_epoch_of_a_vocabulary_is_said(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    later = time.time() + 9 * EPOCH_SECONDS
    monkeypatch.setattr(time, "time", lambda: later)
    line = desk.refused("grant", desk.issuer, "--to", desk.reader, "--for", "research")
    assert "is over since" in line
    assert "vocabulary new" in line
