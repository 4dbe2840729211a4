"""Wrong command lines are told in one sentence of ours, with what was probably meant."""

from __future__ import annotations

import pytest
from running import hushcast


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("subscrib news", "there is no command 'subscrib': did you mean subscribe"),
        ("testnet simulat", "there is no command 'simulat': did you mean simulate?"),
        ("sub news", "there is no command 'sub': did you mean subscribe or subscriptions?"),
        ("simulate", "there is no command 'simulate': did you mean `hushcast testnet simulate`? (see"),
        ("trace", "there is no command 'trace': did you mean `hushcast lab traces`? (see"),
        ("zzz", "there is no command 'zzz' (see `hushcast --help`)"),
        (
            "status --jsno",
            "there is no option --jsno: did you mean --json or --node? (see `hushcast status --help`)",
        ),
        ("--sockt x status", "there is no option --sockt: did you mean --socket or"),
        ("status -Z", "there is no option -Z (see"),
        ("subscribe t --count abc", "--count: 'abc' is not a whole number of at least 0 (see"),
        ("testnet up --dir d --epoch x", "--epoch: 'x' is not a whole number from 5 to 86400 (see"),
        ("testnet up --dir d --epoch 1", "--epoch: 1 is not a whole number from 5 to 86400 (see"),
        ("ack t all", "CURSOR: 'all' is not a whole number from 0 to 9223372036854775807 (see"),
        ("subscribe t --timeout soon", "--timeout: 'soon' is not a number (see"),
        ("subscribe t --timeout -1", "--timeout: -1.0 is not a number of seconds above 0 (see"),
        ("traces generate --seed x", "--seed: 'x' is not a whole number (see"),
        (
            "traces generate --profile papr",
            "--profile: 'papr' is not one of hardened, paper: did you mean paper? (see",
        ),
        ("completion", "SHELL is missing: bash, zsh or fish (see"),
        ("completion tcsh", "SHELL: 'tcsh' is not one of bash, zsh, fish"),
        ("key new", "FILE is missing (see"),
        (
            "publish weather rain at noon",
            "at noon is too much: put a text that has spaces into quotes, 'rain at noon' (see",
        ),
        ("publish t -5", "there is no option -5: what begins with a hyphen goes behind `--` (see"),
        ("subscribe t --where", "--where needs a value"),
        ("status --json=yes", "--json takes no value"),
        ("testnet status --dir /etc/passwd", "--dir: Directory '/etc/passwd' is a file (see"),
    ],
)
async def test_wrong_words(arguments: str, told: str) -> None:
    outcome = await hushcast(*arguments.split())
    assert outcome.code == 2
    assert outcome.error.startswith(told)
    assert "\\t" not in outcome.stderr
