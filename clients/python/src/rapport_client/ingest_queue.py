"""Reports client activity in the background, so that your product never waits for it."""

import atexit
import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Literal, Self

import httpx

from .connection import TIMEOUT_SECONDS, Connection
from .encoding import LARGEST_BATCH_BYTES, encode
from .exceptions import RapportError
from .ingest import LARGEST_BATCH, Event, Rejected, Report, complete, credential, send_batch
from .retry import UNTIL_IT_WORKS, RetryPolicy

CLOSE_SECONDS = 30.0

_log = logging.getLogger(__name__)

Events = list[dict[str, Any]]


class QueueFull(RapportError):
    """The event wasn't added: too many events wait already."""


class QueueClosed(RapportError):
    """The queue was closed before these events could be sent, or before this event was added."""


@dataclass(frozen=True)
class Totals:
    """What came of all events so far."""

    accepted: int = 0
    duplicates: int = 0
    unmatched: int = 0
    rejected: int = 0
    failed: int = 0
    """Events that were given to `on_failed`."""
    dropped: int = 0
    """Events that were not added because the queue was full, with `when_full="drop"`."""


class IngestQueue:
    """Collects events from any thread and sends them in order, in batches, from one thread of its own.

    - A batch is sent when it is full, when its oldest event has waited for `flush_seconds`, and on `flush` and `close`.
    - While the service can't be reached, events wait and are tried again, until it works or the queue is closed.
    - At most `queue_size` events wait. For the next one, `when_full` decides: "raise" raises `QueueFull`, "block" waits
      for room, and "drop" drops the new event and counts it. No event that was added is ever dropped for another.
    - `on_rejected` and `on_unmatched` get each event that was not accepted. `on_failed` gets events that can't be sent
      (a wrong key, or the queue was closed first) with the reason; keep them if you need them. All three are called on
      the sending thread, so they must be quick. Without them, a line in the log counts the events.

    Close it when your program ends, or use it in a `with` statement. If you forget, it is closed at the interpreter's
    exit. Create it after a fork, in each process that uses it.
    """

    def __init__(
        self,
        base_url: str,
        ingest_key: str,
        *,
        batch_size: int = LARGEST_BATCH,
        flush_seconds: float = 1.0,
        queue_size: int = 10_000,
        when_full: Literal["raise", "block", "drop"] = "raise",
        on_rejected: Callable[[Rejected], None] | None = None,
        on_unmatched: Callable[[dict[str, Any]], None] | None = None,
        on_failed: Callable[[Events, RapportError], None] | None = None,
        retry: RetryPolicy = UNTIL_IT_WORKS,
        timeout: float = TIMEOUT_SECONDS,
        http: httpx.Client | None = None,
    ) -> None:
        if not 1 <= batch_size <= LARGEST_BATCH:
            raise ValueError(f"batch_size must be from 1 to {LARGEST_BATCH}")
        if queue_size < batch_size:
            raise ValueError("queue_size must be at least batch_size")
        if when_full not in ("raise", "block", "drop"):
            raise ValueError('when_full must be "raise", "block" or "drop"')
        self._batch_size = batch_size
        self._flush_seconds = flush_seconds
        self._queue_size = queue_size
        self._when_full = when_full
        self._on_rejected = on_rejected
        self._on_unmatched = on_unmatched
        self._on_failed = on_failed

        # Everything below is guarded by this lock. It announces every change that somebody may wait for.
        self._changed = threading.Condition()
        # The JSON of each event, and when it was added.
        self._waiting: deque[tuple[bytes, float]] = deque()
        # How many events were ever added, and of how many of them the result is known. Both are in order.
        self._added = 0
        self._settled = 0
        # Events up to this one are sent without waiting for more.
        self._flush_to = 0
        self._totals = Totals()
        self._closing = False
        self._give_up = threading.Event()

        self._connection = Connection(
            base_url, credential(ingest_key), retry=retry, timeout=timeout, http=http, pause=self._pause
        )
        self._thread = threading.Thread(target=self._run, name="rapport-ingest", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def add(self, event: Event) -> str | None:
        """Adds an event and returns its `event_id`, or None if it was dropped.

        Raises ValueError if the event can't be written as JSON, and `QueueFull` as `when_full` says.
        """
        members = complete(event)
        try:
            text = encode(members)
        except TypeError as error:
            raise ValueError(str(error)) from error
        if len(text) > LARGEST_BATCH_BYTES:
            raise ValueError(f"the event has {len(text)} bytes, which is more than a request may have")
        with self._changed:
            while not self._closing and self._added - self._settled >= self._queue_size:
                if self._when_full == "raise":
                    raise QueueFull(f"{self._queue_size} events are waiting")
                if self._when_full == "drop":
                    self._totals = replace(self._totals, dropped=self._totals.dropped + 1)
                    return None
                self._not_from_a_callback("add")
                self._changed.wait()
            if self._closing:
                raise QueueClosed("the queue is closed")
            self._waiting.append((text, time.monotonic()))
            self._added += 1
            # The sending thread waits for the first event, and then for a full batch.
            if len(self._waiting) in (1, self._batch_size):
                self._changed.notify_all()
        return str(members["event_id"])

    def track(
        self,
        kind: str,
        imported_id: str,
        *,
        feature: str | None = None,
        metadata: dict[str, Any] | None = None,
        event_id: str | None = None,
    ) -> str | None:
        """Adds an event that happens now."""
        members = {"feature": feature, "metadata": metadata, "event_id": event_id}
        given = {name: value for name, value in members.items() if value is not None}
        return self.add({"kind": kind, "imported_id": imported_id, **given})

    def flush(self, timeout: float | None = None) -> bool:
        """Waits until the result of every event added so far is known. Returns False if `timeout` seconds passed."""
        self._not_from_a_callback("flush")
        with self._changed:
            target = self._added
            self._flush_to = max(self._flush_to, target)
            self._changed.notify_all()
            return self._changed.wait_for(lambda: self._settled >= target, timeout)

    def close(self, timeout: float = CLOSE_SECONDS) -> Totals:
        """Sends what waits, and returns the totals. Nothing can be added any more.

        Events that couldn't be sent within `timeout` seconds go to `on_failed`, once a running request has ended.
        """
        self._not_from_a_callback("close")
        atexit.unregister(self.close)
        with self._changed:
            self._closing = True
            self._changed.notify_all()
            # In a process that was forked, the thread doesn't exist.
            if self._thread.is_alive():
                self._changed.wait_for(lambda: self._settled == self._added, timeout)
        self._give_up.set()
        self._thread.join()
        self._connection.close()
        return self.totals

    @property
    def totals(self) -> Totals:
        with self._changed:
            return self._totals

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self) -> None:
        while texts := self._next_batch():
            events: Events = [json.loads(text) for text in texts]
            totals = Totals(failed=len(events))
            try:
                if self._give_up.is_set():
                    raise QueueClosed("the queue was closed before these events could be sent")
                report = send_batch(self._connection, texts, events)
            except RapportError as error:
                self._hand_failed(events, error)
            except Exception as error:
                # Whatever it is, this thread has to go on: others may be waiting for room.
                _log.exception("sending events failed")
                self._hand_failed(events, RapportError(f"{type(error).__name__}: {error}"))
            else:
                totals = self._hand_over(report)
            with self._changed:
                self._totals = _sum(self._totals, totals)
                self._settled += len(texts)
                self._changed.notify_all()

    def _next_batch(self) -> list[bytes]:
        """Waits for a batch. It is empty after the last one."""
        with self._changed:
            while not self._is_due():
                if self._closing:
                    return []
                left = None
                if self._waiting:
                    left = self._waiting[0][1] + self._flush_seconds - time.monotonic()
                self._changed.wait(left)
            texts: list[bytes] = []
            size = 0
            while self._waiting and len(texts) < self._batch_size:
                text, _ = self._waiting[0]
                size += len(text) + 1
                if texts and size > LARGEST_BATCH_BYTES:
                    break
                texts.append(text)
                self._waiting.popleft()
            return texts

    def _is_due(self) -> bool:
        if not self._waiting:
            return False
        return (
            self._closing
            or len(self._waiting) >= self._batch_size
            or self._settled < self._flush_to
            or time.monotonic() >= self._waiting[0][1] + self._flush_seconds
        )

    def _hand_over(self, report: Report) -> Totals:
        for rejected in report.rejected:
            if self._on_rejected is None:
                _log.warning("event rejected: code=%s field=%s", rejected.code, rejected.field)
            else:
                self._call(self._on_rejected, rejected)
        for event in report.unmatched:
            if self._on_unmatched is not None:
                self._call(self._on_unmatched, event)
        if report.unmatched and self._on_unmatched is None:
            _log.warning("events without an account: count=%d", len(report.unmatched))
        return Totals(report.accepted, report.duplicates, len(report.unmatched), len(report.rejected))

    def _hand_failed(self, events: Events, error: RapportError) -> None:
        if self._on_failed is None:
            _log.error("events not sent: count=%d error=%s", len(events), error)
        else:
            self._call(self._on_failed, events, error)

    def _call(self, callback: Callable[..., None], *values: object) -> None:
        try:
            callback(*values)
        except Exception:
            _log.exception("a callback failed")

    def _pause(self, delay: float) -> bool:
        return not self._give_up.wait(min(delay, threading.TIMEOUT_MAX))

    def _not_from_a_callback(self, method: str) -> None:
        if threading.current_thread() is self._thread:
            raise RuntimeError(f"{method} would wait for the callback that calls it")


def _sum(one: Totals, other: Totals) -> Totals:
    return Totals(*(getattr(one, name) + getattr(other, name) for name in Totals.__dataclass_fields__))
