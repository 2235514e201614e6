"""What the tests share: the service under test, and a proxy in front of it that breaks things on request."""

import http.server
import os
import socket
import threading
import uuid
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

URL = os.environ["RAPPORT_URL"]
PROJECT = os.environ["RAPPORT_PROJECT"]
TOKEN = os.environ["RAPPORT_TOKEN"]
INGEST_KEY = os.environ["RAPPORT_INGEST_KEY"]
# If something hasn't happened after this, it never will.
PATIENCE_SECONDS = 60.0
# How long a server of the tests takes to notice that it should stop.
POLL_SECONDS = 0.01
# The headers of a request that the service has to see.
PASSED_ON = ("content-type", "content-encoding", "authorization", "x-service-ingest-key", "idempotency-key")

_http = httpx.Client(base_url=URL, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=PATIENCE_SECONDS)


def call(method: str, path: str, body: object = None, **params: str | int) -> Any:
    """Calls the service itself, and returns its JSON."""
    response = _http.request(method, path, json=body, params=params)
    assert response.is_success, f"{method} {path}: {response.status_code} {response.text}"
    return response.json() if response.content else None


def new_id() -> str:
    """An id that no other test uses."""
    return f"crm-{uuid.uuid4()}"


def account(imported_id: str) -> Any:
    """The account with this id. There is exactly one."""
    (found,) = call("GET", "/api/accounts/", imported_id=imported_id)["items"]
    return found


def usage(imported_id: str) -> dict[str, int]:
    """How often an account used each feature."""
    pulse = call("GET", f"/api/accounts/{account(imported_id)['id']}/pulse/")
    return {feature["feature"]: feature["count"] for feature in pulse["features"]}


@dataclass
class Request:
    """What the proxy got."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Reply:
    """An answer of the proxy's own. The service doesn't see the request."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


class Drop:
    """Closes the connection without an answer; `after` the service has done the request, or before it sees it."""

    def __init__(self, *, after: bool) -> None:
        self.after = after


Step = Reply | Drop


class Proxy:
    """Passes requests on to the service. The first ones go as `steps` say, one step for each."""

    def __init__(self, *steps: Step) -> None:
        self.requests: list[Request] = []
        self.steps = deque(steps)
        self.otherwise: Step | None = None
        """For requests after the last step: this instead of passing them on."""
        self.open = threading.Event()
        """Requests wait for this before anything else happens."""
        self.open.set()
        self.arrived = threading.Semaphore(0)
        """Counts the requests that arrived."""
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                proxy.requests.append(
                    Request(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
                )
                proxy.arrived.release()
                proxy.open.wait(PATIENCE_SECONDS)
                step = proxy.steps.popleft() if proxy.steps else proxy.otherwise
                if isinstance(step, Reply):
                    self.answer(step.status, step.headers, step.body)
                elif isinstance(step, Drop) and not step.after:
                    self.drop()
                else:
                    headers = {name: self.headers[name] for name in PASSED_ON if name in self.headers}
                    response = httpx.post(URL + self.path, content=body, headers=headers, timeout=PATIENCE_SECONDS)
                    if isinstance(step, Drop):
                        self.drop()
                    else:
                        kept = {n: v for n, v in response.headers.items() if n in ("content-type", "retry-after")}
                        self.answer(response.status_code, kept, response.content)

            def answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def drop(self) -> None:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)

            def log_message(self, *values: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(POLL_SECONDS,), daemon=True).start()

    def wait_for_request(self) -> None:
        assert self.arrived.acquire(timeout=PATIENCE_SECONDS), "no request arrived"

    def close(self) -> None:
        self.open.set()
        self._server.shutdown()
        self._server.server_close()


class Pauses:
    """Waits for nobody, and remembers how long it should have."""

    def __init__(self) -> None:
        self.delays: list[float] = []

    def __call__(self, delay: float) -> bool:
        self.delays.append(delay)
        return True


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Waits for a condition that nothing announces."""
    tick = threading.Event()
    for _ in range(int(PATIENCE_SECONDS * 100)):
        if condition():
            return
        tick.wait(0.01)
    raise AssertionError(f"this didn't happen: {what}")
