"""Who is refused leaves nothing behind: an exception that a module holds keeps the frames of all raises."""

from __future__ import annotations

import gc
import importlib
import pkgutil
import weakref

import pytest

import hushcast_brokers
import hushcast_central
import hushcast_directory
import hushcast_gateway
import hushcast_local
import hushcast_located
import hushcast_node
import hushcast_overlay
import hushcast_protocol
import hushcast_runtime
from hushcast_protocol.http.http_request import HttpRequest
from hushcast_protocol.http.publication_request import PublicationRequest
from hushcast_protocol.http.refusals import HttpRefusal
from hushcast_protocol.http.routes import route

NOW = 1_000_000
PACKAGES = (
    hushcast_brokers,
    hushcast_central,
    hushcast_directory,
    hushcast_gateway,
    hushcast_local,
    hushcast_located,
    hushcast_node,
    hushcast_overlay,
    hushcast_protocol,
    hushcast_runtime,
)


class Target(str):
    """What a request asks for, of which a weak reference tells whether it is there still."""


class Body(bytearray):
    """A body of the same kind."""


def no_page() -> weakref.ref:
    request = HttpRequest("GET", Target("/a/b/c/d/e"), ())
    with pytest.raises(HttpRefusal):
        route(request, NOW, b"")
    return weakref.ref(request.target)


def no_method() -> weakref.ref:
    request = HttpRequest("BREW", Target("/a"), ())
    with pytest.raises(HttpRefusal):
        route(request, NOW, b"")
    return weakref.ref(request.target)


def no_credentials() -> weakref.ref:
    request = HttpRequest("GET", Target("/a/json"), (("authorization", b"Basic x" * 1000),))
    with pytest.raises(HttpRefusal):
        request.credentials()
    return weakref.ref(request.target)


def no_json() -> weakref.ref:
    publication = route(HttpRequest("POST", "/", (("title", b"x"),)), NOW, b"")
    assert isinstance(publication, PublicationRequest)
    body = Body(b"{" * 64_000)
    with pytest.raises(HttpRefusal):
        publication.with_body(body, bytes)
    return weakref.ref(body)


@pytest.mark.parametrize("refused", [no_page, no_method, no_credentials, no_json])
def test_a_refused_request_is_not_kept(refused) -> None:
    kept = [refused() for _ in range(5)]
    gc.collect()
    assert [one() for one in kept] == [None] * 5


def test_no_module_holds_an_exception() -> None:
    """With the frames goes what was in them: a stranger's request, its body and its connection."""
    held = []
    for package in PACKAGES:
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if module.name.endswith("__main__"):
                continue
            values = vars(importlib.import_module(module.name)).items()
            held += [f"{module.name}.{name}" for name, value in values if isinstance(value, BaseException)]
    assert held == []
