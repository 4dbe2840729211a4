"""Renews the reference in docs/python.md, made from the docstrings of `import hushcast`."""

from __future__ import annotations

import ast
import inspect
import os
import re
import sys
from pathlib import Path
from typing import Any

from generated_page import renew_or_check

import hushcast
from hushcast import arguments

PAGE = Path(__file__).parents[1] / "docs" / "python.md"

SECTIONS: dict[str, tuple[str, ...]] = {
    "Connecting": ("connect", "connect_sync"),
    "The daemon": ("Daemon",),
    "Messages of a subscription": ("Messages", "Terms"),
    "Without an event loop": ("BlockingDaemon", "BlockingMessages"),
    "Events": (
        *("Event", "Message", "Lost", "Gap", "Unopened", "Withdrawn"),
        *("Coverage", "Disconnected", "Reconnected"),
    ),
    "What a daemon tells": ("Publication", "Unsent", "Subscription", "Finding"),
    "Devices": ("Device", "Invitation", "Imported"),
    "Links and authors": ("new_link", "write_link", "read_link", "Author", "new_author", "read_author"),
    "Purposes": (
        *("read_purpose_keys", "PurposeKeys", "Allowed", "ReadFor"),
        *("Lock", "new_lock", "read_lock"),
    ),
    "Errors": (
        *("HushcastError", "UsageError", "Refusal", "Waiting"),
        *("NoDaemon", "OtherVersion", "TimedOut"),
    ),
}
"""Every public name, in the order in which it is read."""

_TWINS = {"Daemon": "BlockingDaemon", "Messages": "BlockingMessages"}
_ALIASES = {
    "Acknowledging": str(arguments.Acknowledging).removeprefix("typing.").replace("'", '"'),
    "Attributes": "Mapping[str, str | int | float]",
    "Randomness": "Callable[[int], bytes]",
    "events.Coverage": "Coverage",
}
_WIDTH = 100  # columns
_PART = re.compile(r"(?<=<!-- generated: reference -->\n).*?(?=<!-- end -->)", re.DOTALL)


def renewed(page: str) -> str:
    """Return the page with the reference as the docstrings make it now."""
    return _PART.sub(lambda _: reference(), page)


def reference() -> str:
    """Return the reference: a section for each group of names."""
    parts = []
    for title, names in SECTIONS.items():
        parts += [f"### {title}", *(_entry(name) for name in names)]
    return "\n".join(f"{part.rstrip()}\n" for part in parts)


def methods(name: str) -> list[str]:
    """Return what programs may call or iterate over: of what has a blocking twin, what the twin has, too."""
    kind = getattr(hushcast, name)
    called = [member for member, value in members(kind).items() if inspect.isfunction(value)]
    return [member for member in called if not member.startswith("_") and member not in inner(name)]


def members(kind: type) -> dict[str, Any]:
    """Return what a class has, of itself and of those of ours that it is made of."""
    ours = [base for base in reversed(kind.__mro__) if base.__module__.startswith("hushcast")]
    return {name: value for base in ours[-1:] + ours[:-1] for name, value in vars(base).items()}


def inner(name: str) -> set[str]:
    """Return what is for the library's own files: what its blocking twin does without."""
    twin = getattr(hushcast, _TWINS[name]) if name in _TWINS else None
    return set() if twin is None else members(getattr(hushcast, name)).keys() - vars(twin).keys()


def fields(name: str) -> dict[str, tuple[str, str]]:
    """Return annotation and docstring of each field and property that a class declares."""
    kind = getattr(hushcast, name)
    (tree,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(tree, ast.ClassDef)
    found = {}
    for node, following in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = ast.unparse(node.annotation), _text_of(following)
        elif isinstance(node, ast.FunctionDef) and "property" in map(ast.unparse, node.decorator_list):
            assert node.returns is not None
            found[node.name] = ast.unparse(node.returns), ast.get_docstring(node) or ""
    return {field: said for field, said in found.items() if not field.startswith("_")}


def _text_of(node: ast.stmt | None) -> str:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return inspect.cleandoc(str(node.value.value))
    return ""


def _entry(name: str) -> str:
    value = getattr(hushcast, name)
    if name == "Event":
        kinds = ", ".join(f"`{kind.__name__}`" for kind in value.__args__)
        return f"#### `Event`\n\nWhat `Messages.events` brings, for `match` or `isinstance`: {kinds}.\n"
    if name in _TWINS.values():
        members = ", ".join(f"`{member}`" for member in [*methods(name), *fields(name)])
        return f"#### `{name}`\n\n{_paragraphs(value)}\n\n{members}.\n"
    if inspect.isclass(value):
        return _class(name, value)
    return f"#### `{name}`\n\n{_signature(value, name)}\n\n{_paragraphs(value)}\n"


def _class(name: str, kind: type) -> str:
    lines = [f"#### `{name}`", "", _paragraphs(kind), ""]
    if told := fields(name):
        lines += ["| field | type | |", "|---|---|---|"]
        for field, (annotation, said) in told.items():
            cells = f"`{annotation}`".replace("|", "\\|"), " ".join(said.split())
            lines.append(f"| `{field}` | {cells[0]} | {cells[1]} |")
        lines.append("")
    for member in methods(name):
        method = getattr(kind, member)
        lines += [f"##### `{name}.{member}`", "", _signature(method, member), "", _paragraphs(method), ""]
    return "\n".join(lines)


def _signature(function: Any, name: str) -> str:
    function = inspect.unwrap(function)
    told = inspect.signature(function)
    arguments = []
    for argument in told.parameters.values():
        if argument.name == "self":
            continue
        if argument.kind is argument.KEYWORD_ONLY and "*" not in arguments:
            arguments.append("*")
        default = "" if argument.default is argument.empty else f" = {_shown(argument.default)}"
        arguments.append(f"{argument.name}: {_readable(argument.annotation)}{default}")
    called = "async def" if inspect.iscoroutinefunction(function) else "def"
    result = _readable(told.return_annotation)
    line = f"{called} {name}({', '.join(arguments)}) -> {result}"
    if len(line) > _WIDTH:
        line = f"{called} {name}(\n    " + ",\n    ".join(arguments) + f",\n) -> {result}"
    return f"```python\n{line}\n```"


def _readable(annotation: str) -> str:
    """Return an annotation without names that nobody can import; what is entered is shown as it is given."""
    annotation = annotation.replace("'", '"')
    for alias, meaning in _ALIASES.items():
        annotation = re.sub(rf"(?<![\w.]){re.escape(alias)}\b", meaning, annotation)
    return re.sub(r"^(Async)?Iterator\[((?:Blocking)?Daemon)\]$", r"\1ContextManager[\2]", annotation)


def _shown(default: object) -> str:
    return "os.urandom" if default is os.urandom else repr(default).replace("'", '"')


def _paragraphs(documented: Any) -> str:
    """Return a docstring, each paragraph in one line."""
    text = inspect.getdoc(documented) or ""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


if __name__ == "__main__":
    sys.exit(renew_or_check(PAGE, renewed, "the docstrings"))
