"""Routes: what a request asks for, by its method and path."""

from __future__ import annotations

from functools import partial

from hushcast_protocol.http import ntfy_fields as fields
from hushcast_protocol.http.exchanges import HttpAnswer
from hushcast_protocol.http.http_request import HttpRequest, segments
from hushcast_protocol.http.publication_request import PublicationRequest, read_publication
from hushcast_protocol.http.refusals import HttpRefusal
from hushcast_protocol.http.subscription_request import (
    StreamForm,
    SubscriptionRequest,
    read_subscription_request,
)
from hushcast_protocol.http.unified_push import MATRIX, MatrixNotification

HEALTH = "/v1/health"
DESCRIPTION = "/openapi.json"
METHODS = ("GET", "POST", "PUT", "OPTIONS")
"""What may be asked of any path; a path that is nothing else is a topic."""
BY_GET = ("publish", "send", "trigger")
"""Last parts of a path that publish by GET, for what cannot do otherwise."""

Route = PublicationRequest | MatrixNotification | SubscriptionRequest | HttpAnswer

_NOT_FOUND = partial(
    HttpRefusal, 40401, "page not found: GET /TOPIC/json streams a topic, POST /TOPIC publishes to it"
)
_METHOD = partial(HttpRefusal, 40501, f"this is done by {', '.join(METHODS[:-1])} or {METHODS[-1]}")


def route(request: HttpRequest, now: int, description: bytes) -> Route:
    """Return what a request asks for; `now` is Unix time. Raises `HttpRefusal`."""
    path = request.path
    if not path.startswith("/"):
        raise _NOT_FOUND()
    if path == MATRIX and request.method == "POST":
        return MatrixNotification(request.header("host"))
    if request.method in ("POST", "PUT"):
        return read_publication(request, "/".join(segments(path)))
    if request.method != "GET":
        raise _METHOD()
    if path == HEALTH:
        return HttpAnswer(200, b'{"healthy":true}\n')
    if path == DESCRIPTION:
        return HttpAnswer(200, description)
    if path == MATRIX:
        return HttpAnswer(200, b'{"unifiedpush":{"gateway":"matrix"}}\n')
    topic, _, last = path[1:].rpartition("/")
    if publishes_by_get(request):
        return read_publication(request, "/".join(segments(topic)))
    if topic and last in _FORMS:
        return read_subscription_request(request, topic, StreamForm(last), now)
    if request.parameters().flag(fields.UNIFIED_PUSH.names):
        return HttpAnswer(200, b'{"unifiedpush":{"version":1}}\n')
    raise _NOT_FOUND()


def publishes_by_get(request: HttpRequest) -> bool:
    """Tell whether a request publishes as an image or a link can: by its address alone."""
    topic, _, last = request.path[1:].rpartition("/")
    return request.method == "GET" and topic != "" and last in BY_GET


_FORMS = frozenset(one.value for one in StreamForm)
