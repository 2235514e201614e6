"""Makes requests, and makes them again if they failed for a reason that passes."""

import random
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

import httpx

from . import retry
from .encoding import compress
from .exceptions import ErrorResponse, NoResponse, RapportError
from .retry import RetryPolicy
from .version import __version__

TIMEOUT_SECONDS = 30.0

# These are mistakes in the caller's settings.
_HOPELESS = (httpx.UnsupportedProtocol, httpx.LocalProtocolError)


def _sleep(delay: float) -> bool:
    time.sleep(delay)
    return True


class Connection:
    """Requests with one credential. Every request may be repeated, so make only those for which that is safe.

    Several threads can use it. `http` is a client of your own, for example for a proxy or another certificate
    authority; its timeouts apply then, and closing it is up to you.
    """

    def __init__(
        self,
        base_url: str,
        credential: Mapping[str, str],
        *,
        retry: RetryPolicy | None = None,
        timeout: float = TIMEOUT_SECONDS,
        http: httpx.Client | None = None,
        pause: Callable[[float], bool] = _sleep,
    ) -> None:
        """`pause` waits for some seconds before an attempt, and returns False to give up instead."""
        self._base_url = base_url.rstrip("/")
        self._headers = {"User-Agent": f"rapport-client/{__version__}", **credential}
        self._retry = retry or RetryPolicy()
        self._own = http is None
        self._http = http or httpx.Client(timeout=timeout)
        self._pause = pause

    def get(self, path: str, params: Mapping[str, str | int] | None = None) -> Any:
        """Returns the JSON at this path."""
        return self._request("GET", path, params, None, {}).json()

    def post(self, path: str, body: bytes, headers: Mapping[str, str] | None = None) -> httpx.Response:
        """Posts JSON, compressed if that is worthwhile, and returns the response, which is a success."""
        content, encoding = compress(body)
        return self._request(
            "POST", path, None, content, {"Content-Type": "application/json", **encoding, **(headers or {})}
        )

    def close(self) -> None:
        if self._own:
            self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _request(
        self,
        method: str,
        path: str,
        params: Mapping[str, str | int] | None,
        content: bytes | None,
        headers: Mapping[str, str],
    ) -> httpx.Response:
        attempt = 0
        while True:
            attempt += 1
            retry_after: float | None = None
            cause: httpx.TransportError | None = None
            failure: RapportError
            try:
                response = self._http.request(
                    method, self._base_url + path, params=params, content=content, headers={**self._headers, **headers}
                )
            except _HOPELESS:
                raise
            except httpx.TransportError as error:
                failure = NoResponse(f"{type(error).__name__}: {error}")
                cause = error
            else:
                if response.is_success:
                    return response
                failure = _error_of(response)
                retry_after = failure.retry_after
                if not retry.passes(failure.status, failure.code):
                    failure.attempts = attempt
                    raise failure
            failure.attempts = attempt
            # This randomness protects nothing.
            delay = self._retry.delay(attempt, retry_after, random.random())
            if delay is None or not self._pause(delay):
                raise failure from cause


def _error_of(response: httpx.Response) -> ErrorResponse:
    try:
        problem = response.json()
    except ValueError:
        problem = {}
    return ErrorResponse(
        response.status_code,
        problem if isinstance(problem, dict) else {},
        retry.seconds(response.headers.get("Retry-After"), datetime.now(UTC)),
        response.headers.get("X-Request-Id"),
    )
