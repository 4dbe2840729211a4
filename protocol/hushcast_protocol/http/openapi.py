"""The description of all requests, in OpenAPI 3.1: made of what they are read by."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import msgspec

from hushcast_protocol.http import ntfy_fields as fields
from hushcast_protocol.http.ntfy_actions import MAX_ACTIONS
from hushcast_protocol.http.ntfy_fields import NtfyParameter
from hushcast_protocol.http.routes import BY_GET, DESCRIPTION, HEALTH
from hushcast_protocol.http.subscription_request import StreamForm
from hushcast_protocol.http.unified_push import MATRIX

_VERSION = "1"  # of what is described; another where a client would have to change
_STRING = {"type": "string"}
_ACTIONS = {
    "type": "array",
    "maxItems": MAX_ACTIONS,
    "items": {"type": "object", "required": ["action", "label"]},
}
_REFUSALS = {
    "400": "What is wrong with the request",
    "401": "No user, an unknown one, or another password",
    "403": "What the user's lists do not allow, or a page of another site",
    "404": "No topic, or no such page",
    "408": "The message did not come in time",
    "413": "The message is too large",
    "415": "The body is compressed",
    "429": "As much as this user may have is there already",
    "431": "Too many headers",
    "503": "The gateway is busy, or stops",
    "504": "Not acknowledged in time: it may be delivered all the same",
}
_SCHEMAS: dict[str, Any] = {
    "Event": {
        "type": "object",
        "required": ["id", "time", "event", "topic"],
        "properties": {
            "id": {"type": "string", "pattern": "^[A-Za-z0-9]{12}$"},
            "time": {"type": "integer", "description": "Unix time: when it came to this gateway"},
            "expires": {"type": "integer", "description": "Unix time"},
            "event": {"enum": ["open", "keepalive", "message"]},
            "topic": {"type": "string", "description": "of `open` and `keepalive` all, with commas"},
            "message": _STRING,
            "encoding": {"const": "base64", "description": "of a message that is not UTF-8"},
            "title": _STRING,
            "priority": {"type": "integer", "minimum": 1, "maximum": 5},
            "tags": {"type": "array", "items": _STRING},
            "click": _STRING,
            "icon": _STRING,
            "attachment": {"type": "object", "properties": {"name": _STRING, "url": _STRING}},
            "actions": _ACTIONS,
            "content_type": {"const": "text/markdown"},
        },
    },
    "Refusal": {
        "type": "object",
        "required": ["code", "http", "error"],
        "properties": {"code": {"type": "integer"}, "http": {"type": "integer"}, "error": _STRING},
    },
    "Message": {
        "type": "object",
        "required": ["topic"],
        "properties": {
            "topic": {"type": "string", "minLength": 1},
            **{
                one.name: {**_STRING, "description": one.means}
                for one in (fields.MESSAGE, *fields.TEXTS, fields.CACHE)
            },
            "priority": {"type": "integer", "minimum": 1, "maximum": 5},
            "tags": {"type": "array", "items": _STRING},
            "actions": _ACTIONS,
            "markdown": {"type": "boolean"},
            "retain": {"type": "boolean"},
        },
    },
}


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _answers(told: str, content: dict[str, Any]) -> dict[str, Any]:
    refusal = {"application/json": {"schema": _reference("Refusal")}}
    found: dict[str, Any] = {"200": {"description": told, "content": content}}
    return found | {status: {"description": why, "content": refusal} for status, why in _REFUSALS.items()}


def _parameters(topic: str, known: Iterable[NtfyParameter]) -> list[dict[str, Any]]:
    """Return a path's topic, and parameters in the query; each may be a header instead."""
    found: list[dict[str, Any]] = []
    if topic:
        found.append(
            {"name": "topic", "in": "path", "required": True, "description": topic, "schema": _STRING}
        )
    for one in known:
        others = ", ".join(f"`{name}`" for name in one.names if name != one.name)
        means = f"{one.means}. Also {others}, in the query or as a header"
        found.append({"name": one.name, "in": "query", "description": means, "schema": _STRING})
    return found


def _publishes(what: str) -> dict[str, Any]:
    message = {"application/json": {"schema": _reference("Event")}}
    return {
        "summary": what,
        "parameters": _parameters("a topic name of MQTT, with its slashes", fields.OF_PUBLICATIONS),
        "responses": _answers("It is in safety, as an acknowledgement of QoS 1 says", message),
    }


def _streams(form: StreamForm) -> dict[str, Any]:
    kind = form.content_type.partition(";")[0]
    content: dict[str, Any] = {kind: {}} if kind else {}
    found: dict[str, Any] = {
        "summary": f"Stream topics ({form.value})",
        "parameters": _parameters("names or filters of topics, separated by commas", fields.OF_SUBSCRIPTIONS),
        "responses": _answers("Events, until the client leaves, or has what is kept (`poll`)", content),
    }
    if form is StreamForm.WS:
        found["responses"]["101"] = {"description": "A WebSocket, with a JSON event in each message"}
    return found


@cache
def description() -> bytes:
    """Return the description as JSON. Its version is its own: strangers read it, who need not know ours."""
    body = {"requestBody": {"content": {"*/*": {"schema": _STRING}}}}
    posted = {
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": _reference("Message")}},
        }
    }
    message = {"application/json": {"schema": _reference("Event")}}
    as_json = {
        "summary": "Publish a message that is JSON",
        "responses": _answers("It is in safety, as an acknowledgement of QoS 1 says", message),
        **posted,
    }
    paths: dict[str, Any] = {
        "/": {"post": as_json, "put": as_json},
        "/{topic}": {method: {**_publishes("Publish the body"), **body} for method in ("post", "put")},
        **{f"/{{topic}}/{last}": {"get": _publishes("Publish by GET")} for last in BY_GET},
        **{f"/{{topic}}/{form.value}": {"get": _streams(form)} for form in StreamForm},
    }
    asks = {"summary": "Whether this is a push gateway", "responses": _answers("It is", {})}
    notifies = {"summary": "Push a notification of Matrix", "responses": _answers("It is in safety", {})}
    paths[MATRIX] = {"get": asks, "post": {**notifies, **body}}
    for path, told in ((HEALTH, "Whether the gateway answers"), (DESCRIPTION, "This description")):
        answer = {"200": {"description": told, "content": {"application/json": {"schema": {}}}}}
        paths[path] = {"get": {"summary": told, "security": [], "responses": answer}}
    found = {
        "openapi": "3.1.0",
        "info": {
            "title": "Hushcast gateway",
            "version": _VERSION,
            "description": "Topics are those of MQTT, and paths and fields are ntfy's where it has one.",
        },
        "security": [{"basic": []}, {"bearer": []}, {}],
        "paths": paths,
        "components": {
            "schemas": _SCHEMAS,
            "securitySchemes": {
                "basic": {"type": "http", "scheme": "basic"},
                "bearer": {"type": "http", "scheme": "bearer"},
            },
        },
    }
    return msgspec.json.encode(found) + b"\n"
