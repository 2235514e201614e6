"""Checks that a webhook delivery is genuine."""

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypedDict, cast

TOLERANCE_SECONDS = 300

_STANDARD_PREFIX = "whsec_"
_STANDARD_VERSION = "v1,"
_SERVICE_PREFIX = "sha256="
# Seconds since 1970 with more digits than this are no time.
_LONGEST_TIMESTAMP = 15


class WebhookEvent(TypedDict):
    """The payload of a delivery. docs/events.md describes `data` for each `type`."""

    id: str
    """The same in every delivery of the event. Use it to recognize events that you already have."""
    type: str
    created_at: str
    project: str
    data: dict[str, Any]


class SignatureError(Exception):
    """The request isn't a genuine delivery. Answer 400: after a 401 it would not be tried again."""


class MissingHeader(SignatureError):
    """A header that the check needs is missing."""


class MalformedHeader(SignatureError):
    """A header doesn't look as it should."""


class TimestampTooOld(SignatureError):
    """The request was signed too long ago. Somebody may be repeating one that they recorded."""


class TimestampTooNew(SignatureError):
    """The request was signed in the future. Check the clock of this machine."""


class WrongSignature(SignatureError):
    """No signature matches: the secret is another one, or somebody changed the request."""


class MalformedPayload(SignatureError):
    """The signature matches, but the body isn't an event."""


class Verifier:
    """Verifies deliveries with the secrets of a webhook.

    A secret may be in either form, `whs_…` or `whsec_…`. Give the old and the new one while you rotate it.
    """

    def __init__(
        self,
        secrets: str | Iterable[str],
        *,
        tolerance: float = TOLERANCE_SECONDS,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`tolerance` is how many seconds a timestamp may be off, in either direction."""
        self._keys = [_key(secret) for secret in ([secrets] if isinstance(secrets, str) else secrets)]
        if not self._keys:
            raise ValueError("a secret is needed")
        self._tolerance = tolerance
        self._now = now

    def verify(self, body: bytes, headers: Mapping[str, str]) -> WebhookEvent:
        """Checks `webhook-signature` (Standard Webhooks), which covers the body, the id and the time.

        `body` is the raw body, before anything parsed it. The names of headers can be in any case.
        """
        values = _lower_case(headers)
        event_id = _value(values, "webhook-id")
        timestamp = _value(values, "webhook-timestamp")
        signatures = _value(values, "webhook-signature").split(" ")
        if not (timestamp.isascii() and timestamp.isdecimal() and len(timestamp) <= _LONGEST_TIMESTAMP):
            raise MalformedHeader("webhook-timestamp isn't a number of seconds")
        sent = [signature for signature in signatures if signature.startswith(_STANDARD_VERSION)]
        if not sent:
            raise MalformedHeader("webhook-signature has no v1 signature")
        signed = f"{event_id}.{timestamp}.".encode() + _raw(body)
        expected = [
            _STANDARD_VERSION + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
            for key in self._keys
        ]
        _compare(expected, sent)
        # Only now: the time of a request that nobody signed says nothing.
        age = self._now() - int(timestamp)
        if age > self._tolerance:
            raise TimestampTooOld(f"the request was signed {age:.0f} seconds ago")
        if -age > self._tolerance:
            raise TimestampTooNew(f"the request was signed {-age:.0f} seconds in the future")
        return _event(body)

    def verify_service_signature(self, body: bytes, headers: Mapping[str, str]) -> WebhookEvent:
        """Checks `X-Service-Signature`, which covers only the body.

        A recorded request stays valid for ever, so remember the ids of events for 90 days. Prefer `verify`, and don't
        accept either of the two: somebody who repeats a request could choose the weaker one.
        """
        sent = _value(_lower_case(headers), "x-service-signature")
        if not sent.startswith(_SERVICE_PREFIX):
            raise MalformedHeader("X-Service-Signature doesn't begin with sha256=")
        raw = _raw(body)
        _compare([_SERVICE_PREFIX + hmac.digest(key, raw, hashlib.sha256).hex() for key in self._keys], [sent])
        return _event(body)


def _key(secret: str) -> bytes:
    if not secret:
        raise ValueError("the secret is empty")
    if not secret.startswith(_STANDARD_PREFIX):
        return secret.encode()
    try:
        key = base64.b64decode(secret.removeprefix(_STANDARD_PREFIX), validate=True)
    except binascii.Error as error:
        raise ValueError("the secret begins with whsec_, but no base64 follows") from error
    if not key:
        raise ValueError("the secret is empty")
    return key


def _raw(body: bytes) -> bytes:
    if not isinstance(body, bytes | bytearray | memoryview):
        raise TypeError("the raw body is needed, as bytes: parsing and writing it again changes it")
    return bytes(body)


def _lower_case(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _value(headers: dict[str, str], name: str) -> str:
    value = headers.get(name)
    if not value:
        raise MissingHeader(f"the header {name} is missing")
    return value


def _compare(expected: list[str], sent: list[str]) -> None:
    matches = 0
    for one in expected:
        for other in sent:
            # In constant time, and without stopping at the first match.
            matches += hmac.compare_digest(one.encode(), other.encode(errors="replace"))
    if not matches:
        raise WrongSignature("no signature matches: another secret, or a changed request")


def _event(body: bytes) -> WebhookEvent:
    try:
        event = json.loads(body)
    except ValueError as error:
        raise MalformedPayload("the body isn't JSON") from error
    if not isinstance(event, dict) or not isinstance(event.get("id"), str) or not isinstance(event.get("type"), str):
        raise MalformedPayload("the body isn't an event")
    return cast(WebhookEvent, event)
