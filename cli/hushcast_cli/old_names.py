"""Names that commands once had: understood where a command line begins with them, and shown nowhere."""

from __future__ import annotations

OLD_NAMES = {
    "admin directory simulate": "lab directories",
    "analyze": "lab analyze",
    "backup": "admin backup",
    "broker": "admin broker",
    "broker check-config": "admin check-config --show",
    "broker doctor": "doctor broker",
    "broker run": "run broker",
    "central proxy check-config": "admin check-config --show",
    "central proxy doctor": "doctor central-proxy",
    "central proxy run": "run central-proxy",
    "central server admit": "admin central admit",
    "central server check-config": "admin check-config --show",
    "central server doctor": "doctor central-server",
    "central server run": "run central-server",
    "check-config": "admin check-config",
    "community": "admin community",
    "directory": "admin directory",
    "directory doctor": "doctor directory",
    "directory run": "run directory",
    "directory simulate": "lab directories",
    "filters": "lab filters",
    "gateway check-config": "admin check-config --show",
    "gateway doctor": "doctor gateway",
    "gateway purposes": "gateway purpose",
    "gateway run": "run gateway",
    "key": "admin key",
    "located check-config": "admin check-config --show",
    "located doctor": "doctor located-provider",
    "located figures": "lab located figures",
    "located map": "lab located map",
    "located match": "lab located match",
    "located provide": "run located-provider",
    "located verify": "lab located verify",
    "node run": "run node",
    "purposes": "lab purpose",
    "restore": "admin restore",
    "tomography": "admin tomography",
    "tomography check-config": "admin check-config --show",
    "tomography doctor": "doctor tomography",
    "tomography run": "run tomography",
    "traces": "lab traces",
    "upgrade-config": "admin upgrade-config",
}
"""Each with what is typed today."""

_LONGEST = max(len(name.split()) for name in OLD_NAMES)
_FLAG = "--json"  # the one option that may stand between the words of a name


def current_words(words: list[str]) -> list[str]:
    """Return the words of a command line, of which the longest old name in front is replaced."""
    places = [at for at, word in enumerate(words) if word != _FLAG][:_LONGEST]
    for count in range(len(places), 0, -1):
        name = " ".join(words[at] for at in places[:count])
        if (now := OLD_NAMES.get(name)) is not None and places[0] == 0:
            end = places[count - 1] + 1
            return [*now.split(), *[_FLAG] * (end - count), *words[end:]]
    return words
