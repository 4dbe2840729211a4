"""What pages of figures are made of; a page is one file that needs no other. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

_STYLE = """
:root { color-scheme: light }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 1.5rem auto; padding: 0 1rem;
  color: #1b1b1b; background: #fff; overflow-wrap: break-word }
h1 { font-size: 1.5rem } h2 { font-size: 1.2rem; margin-top: 2rem }
.pair { display: flex; flex-wrap: wrap; gap: 1.5rem }
figure { margin: 0; flex: 1 1 26rem; max-width: 34rem }
svg { width: 100%; height: auto; display: block }
figcaption { font-size: 14px; color: #444; font-weight: 600 }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-size: 14px }
td, th { padding: .15rem .6rem; text-align: right; border-bottom: 1px solid #ddd }
"""


def document(title: str, parts: Iterable[str], style: str = "") -> str:
    """Return a page; `style` is for what this page alone has."""
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}{style}</style></head>\n"
        f"<body>\n{body}\n</body></html>\n"
    )
