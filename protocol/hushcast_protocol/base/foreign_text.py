"""Foreign text: what a file is that was to be text in UTF-8, told to whoever wrote it."""

from __future__ import annotations

import codecs

BYTE_ORDER_MARK = "\ufeff"
MARKED = "it begins with a byte order mark: save it as UTF-8 without one"

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def foreign(data: bytes) -> str | None:
    """Say what keeps bytes from being such text; `None` where nothing does."""
    if data.startswith(codecs.BOM_UTF8):
        return MARKED
    if data.startswith(_UTF16):
        return "it is text in UTF-16: save it as UTF-8"
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return f"line {line} is no UTF-8, which has no byte {data[error.start]:#04x} there: save it as UTF-8"
    return None
