"""Seeded mutators: of bytes, of the msgpack trees inside them, and of texts that people write."""

from __future__ import annotations

from functools import lru_cache
from random import Random
from typing import Any

import msgspec

MAX_INPUT = 1 << 17  # bytes; larger ones cost time and reach nothing else (limits have tests of their own)
PAGE = 512  # bytes of a page of a database that is damaged page by page
_NUMBERS = (
    0,
    1,
    -1,
    23,
    127,
    128,
    255,
    256,
    65535,
    65536,
    2**31,
    2**32 - 1,
    2**48 - 1,
    2**48,
    2**63,
    2**64 - 1,
)
_SIZES = (0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 257, 1024, 1025)
_HEADS = (  # msgpack: lengths that lie, types that do not belong
    b"\xc0\xc1\xc2\xc3\xc6\xff\xff\xff\xff\xc9\xff\xff\xff\xff\xdb\xff\xff\xff\xff"
    b"\xdd\xff\xff\xff\xff\xdf\xff\xff\xff\xff\xd3\x80\x00\x00\x00\x00\x00\x00\x00\xcb\x7f\xf8\x00\x00"
)


def mutate_bytes(random: Random, corpus: list[bytes]) -> bytes:
    """Damage one of the corpus in one to a few places."""
    return _damaged(random, random.choice(corpus), corpus)


def mutate_packed(random: Random, corpus: list[bytes]) -> bytes:
    """Change values inside the msgpack of one of the corpus, and now and then the bytes as well."""
    data = random.choice(corpus)
    for _ in range(_few(random)):
        data = _repacked(random, data, corpus)
        if len(data) > MAX_INPUT:  # lists that grow a thousandfold three times would take all memory
            break
    return _damaged(random, data, corpus) if random.random() < 0.2 else data[:MAX_INPUT]


def mutate_pages(random: Random, corpus: list[bytes]) -> bytes:
    """Damage many leaves of a SQLite database; now and then what leads to them, or the whole."""
    data = random.choice(corpus)
    pages = [data[at : at + PAGE] for at in range(0, len(data), PAGE)]
    for number, page in enumerate(pages):
        is_leaf = page[:1] in (b"\x0a", b"\x0d")
        if random.random() < (0.5 if is_leaf else 0.2):
            pages[number] = _damaged(random, page, pages).ljust(PAGE, b"\x00")[:PAGE]
    whole = b"".join(pages)
    return mutate_bytes(random, [whole]) if random.random() < 0.2 else whole


def mutate_text(random: Random, corpus: list[bytes]) -> bytes:
    """Damage a text by its words and signs."""
    text = random.choice(corpus).decode(errors="surrogateescape")
    words = [*_words(text)]
    for _ in range(_few(random)):
        at = random.randrange(len(words) + 1)
        move = random.randrange(7)
        if move == 0:
            words[at:at] = [random.choice(_WORDS)]
        elif move == 1:
            words[at : at + 1] = [random.choice(_WORDS)]
        elif move == 2:
            del words[at : at + _few(random)]
        elif move == 3:
            words[at:at] = words[at : at + _few(random)] * random.choice((1, 2, 9))
        elif move == 4:
            words[at:at] = random.sample(other := _words(_text(random, corpus)), min(len(other), 3))
        elif move == 5:
            words[at:at] = [chr(random.choice((0, 10, 0x7F, 0x85, 0x200B, 0x301, 0x661, 0xFFFF, 0x1F600)))]
        else:
            words[at : at + 1] = [str(random.choice(_NUMBERS)) * random.choice((1, 1, 2, 300))]
        words = words[:4000]
    data = "".join(words).encode(errors="surrogateescape")
    return _damaged(random, data, corpus) if random.random() < 0.1 else data[:MAX_INPUT]


_WORDS = (
    *"\"'\\,.:;=[](){}<>-_#+%\n\r\t /▸",
    *("..", "in", "nan", "-inf", "1e999999999", "-1E-999999999", "0.000000000001", "999999999999999", "1_0"),
    *("٣", "²", "hushcast:", "unix:", "127.0.0.1:", ".onion:", "\r\n", '"""', "'''", "\\u0000", "[[", "]]"),
    *("true", "1979-05-27T07:32:00Z", "9999-99-99", "0x", "é", "e\u0301", "ﬃ", "\U0010ffff", "null"),
)


def _text(random: Random, corpus: list[bytes]) -> str:
    return random.choice(corpus).decode(errors="surrogateescape")


@lru_cache(64)
def _words(text: str) -> tuple[str, ...]:
    found: list[str] = []
    for sign in text:
        if found and sign.isalnum() and found[-1][-1].isalnum() and len(found[-1]) < 12:
            found[-1] += sign
        else:
            found.append(sign)
    return tuple(found)


def _few(random: Random) -> int:
    return min(int(random.expovariate(0.6)) + 1, 12)


def _damaged(random: Random, given: bytes, corpus: list[bytes]) -> bytes:
    data = bytearray(given)
    for _ in range(_few(random)):
        at = random.randrange(len(data) + 1)
        move = random.randrange(10)
        if move < 3 and at < len(data):
            data[at] ^= 1 << random.randrange(8)
        elif move == 3 and at < len(data):
            data[at] = random.choice(b"\x00\x01\x7f\x80\xff\x05\x20\x90\xc4\xdd")
        elif move == 4:
            del data[at:]
        elif move == 5:
            del data[at : at + random.choice((1, 2, 4, 16, 33))]
        elif move == 6:
            data[at:at] = random.randbytes(random.choice((1, 2, 4, 16, 33, 300)))
        elif move == 7:
            start = random.randrange(len(_HEADS))
            data[at : at + random.randrange(6)] = _HEADS[start : start + random.randrange(1, 10)]
        elif move == 8:
            data[at:at] = data[at : at + random.choice((1, 8, 40, 500))] * random.choice((1, 2, 50))
        elif move == 9:
            other = random.choice(corpus)
            start = random.randrange(len(other) + 1)
            data[at:] = other[start : start + 4096]
        if random.random() < 0.002:
            data[at:at] = random.choice((b"\x91", b"\x81\xa0", b"[", b'{"a":')) * 20_000
        del data[MAX_INPUT:]
    return bytes(data)


def _repacked(random: Random, data: bytes, corpus: list[bytes]) -> bytes:
    try:
        tree = msgspec.msgpack.decode(data)
        return msgspec.msgpack.encode(_changed(random, tree, corpus))
    except (msgspec.MsgspecError, ValueError, RecursionError, TypeError, OverflowError):
        return _damaged(random, data, corpus)


def _changed(random: Random, node: Any, corpus: list[bytes]) -> Any:
    """Change one place of a tree: here, or in one of its branches."""
    if isinstance(node, list) and node and random.random() < 0.8:
        at = random.randrange(len(node))
        node = list(node)
        if random.random() < 0.75:
            node[at] = _changed(random, node[at], corpus)
        else:
            _rearrange(random, node, at)
        return node
    if isinstance(node, dict) and node and random.random() < 0.7:
        name = random.choice(list(node))
        if random.random() < 0.3:
            return {**node, random.choice(("", "x", name + "x", 7)): node[name]}
        return {**node, name: _changed(random, node[name], corpus)}
    if isinstance(node, bytes) and random.random() < 0.85:
        # What is signed or sealed again behind a target's door lies here as plain msgpack.
        return _repacked(random, node, corpus) if len(node) > 40 else _resized(random, node)
    if isinstance(node, int) and random.random() < 0.6:
        return max(-(2**63), min(2**64 - 1, node + random.choice((-1, 1, 2, 24, 2**20, -(2**20)))))
    if isinstance(node, str) and random.random() < 0.6:
        return _damaged(random, node.encode(), corpus).decode(errors="replace")[:5000]
    return _anything(random, corpus)


def _rearrange(random: Random, items: list[Any], at: int) -> None:
    move = random.randrange(5)
    if move == 0:
        del items[at]
    elif move == 1:
        items.insert(at, items[random.randrange(len(items))])
    elif move == 2:
        random.shuffle(items)
    elif move == 3:
        items += [items[at]] * random.choice((1, 7, 80, 257, 1025))
    else:
        del items[1:]


def _resized(random: Random, data: bytes) -> bytes:
    if data and random.random() < 0.5:
        flipped = bytearray(data)
        flipped[random.randrange(len(data))] ^= 1 << random.randrange(8)
        return bytes(flipped)
    if random.random() < 0.5:
        return bytes([random.choice((0, 1, 255))]) * len(data)
    size = random.choice(_SIZES)
    return (data * (size // max(len(data), 1) + 1))[:size]


def _anything(random: Random, corpus: list[bytes]) -> Any:
    move = random.randrange(8)
    if move == 0:
        return random.choice(_NUMBERS)
    if move == 1:
        return random.randbytes(random.choice(_SIZES))
    if move == 2:
        return random.choice(
            ("", "a" * 81, "é", "\x00", "127.0.0.1:1", "0" * 32 + ".memory:1", "relay", "ack")
        )
    if move == 3:
        return random.choice((None, True, False, 1.5, float("nan"), -0.0))
    if move == 4:
        return [random.choice(_NUMBERS)] * random.choice((0, 1, 2, 300))
    if move == 5:
        return {random.choice(("", "a", 1)): random.choice(_NUMBERS)}
    if move == 6:
        return msgspec.msgpack.Ext(random.choice((-1, 0, 5)), random.randbytes(random.choice((4, 8, 12))))
    try:
        other = msgspec.msgpack.decode(random.choice(corpus))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return b""
    while isinstance(other, list) and other and random.random() < 0.7:
        other = random.choice(other)
    return other
