"""Sending events in the background, against the real service."""

import logging
import threading
import unittest
from collections.abc import Callable
from typing import Any

from rapport_client import ErrorResponse, IngestQueue, QueueClosed, QueueFull, RapportError, Rejected, RetryPolicy
from support import INGEST_KEY, PATIENCE_SECONDS, Drop, Proxy, Reply, call, new_id, usage, wait_until

# Long enough that a test never waits for it to pass.
NEVER = 3600.0
STUBBORN = RetryPolicy(attempts=None, first_delay=0.001, largest_delay=0.01)


class Queues(unittest.TestCase):
    def setUp(self) -> None:
        self.proxy = Proxy()
        self.addCleanup(self.proxy.close)
        self.account = new_id()
        call("POST", "/api/accounts/", {"name": "Nordlys", "imported_id": self.account})
        self.failed: list[tuple[list[dict[str, Any]], RapportError]] = []
        logging.getLogger("rapport_client").addHandler(logging.NullHandler())

    def queue(self, **options: Any) -> IngestQueue:
        settings: dict[str, Any] = {
            "flush_seconds": NEVER,
            "retry": STUBBORN,
            "on_failed": lambda events, error: self.failed.append((events, error)),
            **options,
        }
        queue = IngestQueue(self.proxy.url, settings.pop("ingest_key", INGEST_KEY), **settings)
        self.addCleanup(queue.close, 0.0)
        return queue

    def use(self, queue: IngestQueue, feature: str = "app.export") -> str | None:
        return queue.track("feature_used", self.account, feature=feature)

    def test_a_full_batch_is_sent_at_once(self) -> None:
        queue = self.queue(batch_size=3)
        for _ in range(7):
            self.use(queue)
        wait_until(lambda: queue.totals.accepted == 6, "two batches are accepted")
        self.assertEqual(len(self.proxy.requests), 2)

    def test_an_event_is_sent_after_some_time(self) -> None:
        queue = self.queue(flush_seconds=0.01)
        self.use(queue)
        wait_until(lambda: queue.totals.accepted == 1, "the event is accepted")

    def test_flush_waits_for_the_results(self) -> None:
        queue = self.queue()
        for _ in range(250):
            self.use(queue)
        self.assertTrue(queue.flush(PATIENCE_SECONDS))
        self.assertEqual(queue.totals.accepted, 250)
        self.assertEqual(len(self.proxy.requests), 3)
        self.assertTrue(queue.flush(0.0))

    def test_flush_says_if_it_took_too_long(self) -> None:
        self.proxy.open.clear()
        queue = self.queue()
        self.use(queue)
        self.assertFalse(queue.flush(0.01))
        self.proxy.open.set()
        self.assertTrue(queue.flush(PATIENCE_SECONDS))

    def test_close_sends_the_rest(self) -> None:
        with self.queue() as queue:
            for _ in range(5):
                self.use(queue)
        self.assertEqual(queue.totals.accepted, 5)
        self.assertEqual(usage(self.account), {"app.export": 5})
        with self.assertRaises(QueueClosed):
            self.use(queue)
        self.assertEqual(queue.close().accepted, 5)

    def test_many_threads_can_add(self) -> None:
        with self.queue(flush_seconds=0.01, queue_size=200, when_full="block") as queue:
            threads = [
                threading.Thread(target=lambda name: [self.use(queue, name) for _ in range(250)], args=(f"f{n}",))
                for n in range(8)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(queue.totals.accepted, 2000)
        self.assertEqual(usage(self.account), {f"f{n}": 250 for n in range(8)})

    def test_the_order_stays(self) -> None:
        with self.queue(batch_size=2) as queue:
            for kind in ("trial_started", "became_customer", "churned", "trial_started", "became_customer"):
                queue.track(kind, self.account)
        (found,) = call("GET", "/api/accounts/", imported_id=self.account)["items"]
        history = call("GET", f"/api/accounts/{found['id']}/history/")["items"]
        moves = ["customer", "in_trial", "lost", "customer", "in_trial", "prospect"]
        self.assertEqual([entry["to"] for entry in history], moves)

    def test_an_outage_loses_nothing_and_repeats_nothing(self) -> None:
        self.proxy.otherwise = Reply(503)
        queue = self.queue(batch_size=10)
        for _ in range(25):
            self.use(queue)
        for _ in range(20):
            self.proxy.wait_for_request()
        self.assertEqual((queue.totals.accepted, self.failed), (0, []))
        # The service is back, but the first responses are lost on the way.
        self.proxy.steps += [Drop(after=True), Drop(after=True)]
        self.proxy.otherwise = None
        totals = queue.close(PATIENCE_SECONDS)
        self.assertEqual((totals.accepted + totals.duplicates, totals.failed), (25, 0))
        self.assertEqual(usage(self.account), {"app.export": 25})

    def test_callbacks_get_what_was_not_accepted(self) -> None:
        rejected: list[Rejected] = []
        unmatched: list[dict[str, Any]] = []
        with self.queue(on_rejected=rejected.append, on_unmatched=unmatched.append) as queue:
            self.use(queue)
            wrong = queue.track("bogus", self.account)
            queue.track("app_opened", "nobody", event_id=f"e-{self.account}")
        self.assertEqual([(one.event["event_id"], one.code) for one in rejected], [(wrong, "unknown_kind")])
        self.assertEqual([event["event_id"] for event in unmatched], [f"e-{self.account}"])
        totals = queue.totals
        self.assertEqual((totals.accepted, totals.rejected, totals.unmatched, totals.failed), (1, 1, 1, 0))

    def test_a_callback_that_fails_stops_nothing(self) -> None:
        def fail(_: Rejected) -> None:
            raise ZeroDivisionError

        with self.assertLogs("rapport_client", "ERROR") as logs, self.queue(batch_size=1, on_rejected=fail) as queue:
            queue.track("bogus", self.account)
            self.use(queue)
        self.assertEqual((queue.totals.rejected, queue.totals.accepted), (1, 1))
        self.assertIn("a callback failed", logs.output[0])

    def test_without_callbacks_the_log_says_so_without_the_payload(self) -> None:
        with self.assertLogs("rapport_client", "WARNING") as logs, self.queue() as queue:
            queue.track("bogus", self.account, metadata={"private": "Secret Plan"})
            queue.track("app_opened", "nobody")
            self.use(queue)
        self.assertIn("unknown_kind", logs.output[0])
        self.assertIn("count=1", logs.output[1])
        self.assertNotIn("Secret Plan", "".join(logs.output))

    def test_a_callback_must_not_wait_for_itself(self) -> None:
        errors: list[BaseException] = []
        waits: list[Callable[[], object]] = []

        def misuse(_: Rejected) -> None:
            for wait in waits:
                try:
                    wait()
                except RuntimeError as error:
                    errors.append(error)

        queue = self.queue(on_rejected=misuse)
        waits += [queue.flush, queue.close]
        queue.track("bogus", self.account)
        queue.close(PATIENCE_SECONDS)
        self.assertEqual(len(errors), 2)

    def test_what_cannot_be_sent_is_handed_over(self) -> None:
        with self.queue(ingest_key="unknown") as queue:
            added = self.use(queue)
        ((events, error),) = self.failed
        self.assertEqual([event["event_id"] for event in events], [added])
        assert isinstance(error, ErrorResponse)
        self.assertEqual((error.status, queue.totals.failed), (401, 1))

    def test_closing_during_an_outage_hands_over_the_rest(self) -> None:
        self.proxy.otherwise = Reply(503, {"Retry-After": "3000"})
        queue = self.queue(batch_size=2, retry=RetryPolicy(attempts=None, longest_wait=NEVER))
        added = [self.use(queue) for _ in range(5)]
        self.proxy.wait_for_request()
        totals = queue.close(0.01)
        self.assertEqual(totals.failed, 5)
        self.assertEqual([event["event_id"] for events, _ in self.failed for event in events], added)
        first, *others = [error for _, error in self.failed]
        self.assertIsInstance(first, ErrorResponse)
        self.assertEqual({type(error) for error in others}, {QueueClosed})

    def test_a_full_queue_does_what_it_was_told(self) -> None:
        self.proxy.open.clear()
        with self.subTest("raise"):
            queue = self.queue(batch_size=2, queue_size=4)
            for _ in range(4):
                self.use(queue)
            with self.assertRaises(QueueFull):
                self.use(queue)
        with self.subTest("drop"):
            queue = self.queue(batch_size=2, queue_size=4, when_full="drop")
            added = [self.use(queue) for _ in range(6)]
            self.assertEqual([event is None for event in added], [False] * 4 + [True] * 2)
            self.assertEqual(queue.totals.dropped, 2)
        with self.subTest("block"):
            queue = self.queue(batch_size=2, queue_size=4, when_full="block")
            for _ in range(4):
                self.use(queue)
            done = threading.Event()

            def add() -> None:
                self.use(queue)
                done.set()

            thread = threading.Thread(target=add)
            thread.start()
            self.assertFalse(done.wait(0.05))
            self.proxy.open.set()
            thread.join(PATIENCE_SECONDS)
            self.assertTrue(done.is_set())
            self.assertEqual(queue.close(PATIENCE_SECONDS).accepted, 5)

    def test_closing_wakes_those_who_wait_for_room(self) -> None:
        self.proxy.otherwise = Reply(503, {"Retry-After": "3000"})
        queue = self.queue(
            batch_size=1, queue_size=1, when_full="block", retry=RetryPolicy(attempts=None, longest_wait=NEVER)
        )
        self.use(queue)
        errors: list[BaseException] = []

        def add() -> None:
            try:
                self.use(queue)
            except QueueClosed as error:
                errors.append(error)

        thread = threading.Thread(target=add)
        thread.start()
        self.proxy.wait_for_request()
        queue.close(0.0)
        thread.join(PATIENCE_SECONDS)
        self.assertEqual(len(errors), 1)

    def test_settings_are_checked(self) -> None:
        table: list[tuple[dict[str, Any], str]] = [
            ({"batch_size": 101}, "batch_size"),
            ({"batch_size": 0}, "batch_size"),
            ({"queue_size": 10}, "queue_size"),
            ({"when_full": "explode"}, "when_full"),
        ]
        for options, name in table:
            with self.subTest(name), self.assertRaisesRegex(ValueError, name):
                IngestQueue(self.proxy.url, INGEST_KEY, **options)

    def test_an_event_that_is_no_json_is_refused_at_once(self) -> None:
        with self.queue() as queue:
            for metadata in ({"x": object()}, {"x": "y" * 1_100_000}):
                with self.assertRaises(ValueError):
                    queue.track("app_opened", self.account, metadata=metadata)
        self.assertEqual(self.proxy.requests, [])


if __name__ == "__main__":
    unittest.main()
