"""When a request is made again."""

import json
import random
import unittest
from datetime import UTC, datetime

from rapport_client import Connection, ErrorResponse, NoResponse, RetryPolicy
from rapport_client.retry import UNTIL_IT_WORKS, passes, seconds
from support import TOKEN, URL, Drop, Pauses, Proxy, Reply, call

NOW = datetime(2026, 5, 12, 8, 30, tzinfo=UTC)
QUICK = RetryPolicy(first_delay=0.001)


class Delay(unittest.TestCase):
    def test_grows_with_jitter_and_never_undercuts_what_the_service_asked(self) -> None:
        policy = RetryPolicy(attempts=6, first_delay=0.5, largest_delay=3.0, longest_wait=60.0)
        table: list[tuple[int, float | None, float, float | None]] = [
            # attempt, Retry-After, chance, delay
            (1, None, 0.0, 0.25),
            (1, None, 1.0, 0.5),
            (2, None, 1.0, 1.0),
            (3, None, 0.0, 1.0),
            (4, None, 1.0, 3.0),
            (5, None, 1.0, 3.0),
            (6, None, 1.0, None),
            (1, 2.0, 0.0, 2.0),
            (1, 2.0, 1.0, 2.5),
            (4, 1.0, 1.0, 3.0),
            (1, 60.0, 0.0, 60.0),
            (1, 61.0, 0.0, None),
            (1, 0.0, 0.0, 0.25),
        ]
        for attempt, retry_after, chance, expected in table:
            with self.subTest(attempt=attempt, retry_after=retry_after, chance=chance):
                self.assertEqual(policy.delay(attempt, retry_after, chance), expected)

    def test_until_it_works_never_gives_up_and_never_overflows(self) -> None:
        for attempt in (1, 100, 1_000_000):
            delay = UNTIL_IT_WORKS.delay(attempt, None, random.random())
            assert delay is not None
            self.assertLessEqual(delay, UNTIL_IT_WORKS.largest_delay)
        self.assertEqual(UNTIL_IT_WORKS.delay(9, 86_400.0, 0.0), 86_400.0)

    def test_reads_seconds_and_dates(self) -> None:
        table = [
            (None, None),
            ("7", 7.0),
            ("0", 0.0),
            ("Tue, 12 May 2026 08:30:20 GMT", 20.0),
            ("Tue, 12 May 2026 08:00:00 GMT", 0.0),
            ("soon", None),
            ("-1", None),
            ("", None),
            ("9" * 5000, 999_999_999.0),
        ]
        for header, expected in table:
            with self.subTest(header=header):
                self.assertEqual(seconds(header, NOW), expected)

    def test_only_what_passes_is_tried_again(self) -> None:
        table = [
            (408, "body_too_slow", True),
            (429, "rate_limited", True),
            (502, None, True),
            (503, "busy", True),
            (504, None, True),
            (409, "request_in_progress", True),
            (409, "name_taken", False),
            (400, "not_json", False),
            (401, "unauthenticated", False),
            (413, "batch_too_large", False),
            (422, "invalid", False),
            (500, "internal_error", False),
        ]
        for status, code, expected in table:
            with self.subTest(status=status, code=code):
                self.assertEqual(passes(status, code), expected)


class Requests(unittest.TestCase):
    def connect(self, *steps: Reply | Drop, retry: RetryPolicy = QUICK, token: str = TOKEN) -> Connection:
        self.proxy = Proxy(*steps)
        self.addCleanup(self.proxy.close)
        self.pauses = Pauses()
        connection = Connection(self.proxy.url, {"Authorization": f"Bearer {token}"}, retry=retry, pause=self.pauses)
        self.addCleanup(connection.close)
        return connection

    def create(self, connection: Connection) -> int:
        body = json.dumps({"name": "Retried"}).encode()
        return connection.post("/api/accounts/", body, {"Idempotency-Key": "retry-1"}).status_code

    def test_repeats_until_the_service_answers(self) -> None:
        connection = self.connect(
            Reply(503, {"Retry-After": "3"}), Reply(429, {"Retry-After": "2"}), Reply(502), Drop(after=False)
        )
        self.assertEqual(self.create(connection), 201)
        self.assertEqual(len(self.proxy.requests), 5)
        first, second, third, fourth = self.pauses.delays
        self.assertGreaterEqual(first, 3.0)
        self.assertGreaterEqual(second, 2.0)
        self.assertLess(max(third, fourth), 1.0)

    def test_gives_up_after_the_last_attempt_with_the_last_error(self) -> None:
        connection = self.connect(retry=RetryPolicy(attempts=3, first_delay=0.001))
        self.proxy.otherwise = Reply(
            503, {"Retry-After": "1", "X-Request-Id": "r-1"}, b'{"code": "busy", "detail": "too much to do"}'
        )
        with self.assertRaises(ErrorResponse) as raised:
            self.create(connection)
        error = raised.exception
        self.assertEqual((error.status, error.code, error.attempts, error.retry_after), (503, "busy", 3, 1.0))
        self.assertEqual((error.request_id, str(error)), ("r-1", "503 busy too much to do"))
        self.assertEqual(len(self.proxy.requests), 3)

    def test_gives_up_when_nobody_answers(self) -> None:
        connection = self.connect(retry=RetryPolicy(attempts=2, first_delay=0.001))
        self.proxy.otherwise = Drop(after=False)
        with self.assertRaises(NoResponse) as raised:
            self.create(connection)
        self.assertEqual(raised.exception.attempts, 2)
        self.assertIsNotNone(raised.exception.__cause__)

    def test_does_not_wait_longer_than_it_may(self) -> None:
        connection = self.connect(Reply(429, {"Retry-After": "3600"}, b"<html>no JSON</html>"))
        with self.assertRaises(ErrorResponse) as raised:
            self.create(connection)
        self.assertEqual((raised.exception.retry_after, raised.exception.code), (3600.0, None))
        self.assertEqual(self.pauses.delays, [])

    def test_refusals_are_not_repeated(self) -> None:
        connection = self.connect(token="unknown")
        with self.assertRaises(ErrorResponse) as raised:
            self.create(connection)
        self.assertEqual((raised.exception.status, raised.exception.code), (401, "unauthenticated"))
        self.assertEqual(len(self.proxy.requests), 1)

    def test_a_wrong_url_is_not_repeated(self) -> None:
        connection = Connection("crm.acme.example", {}, pause=self.fail)
        with self.assertRaises(Exception) as raised:
            connection.get("/api/accounts/")
        self.assertIn("protocol", str(raised.exception))

    def test_follows_the_rate_limit_of_the_service(self) -> None:
        token = call("POST", "/api/tokens/", {"name": "Slow program", "rate_limit": 1})["token"]
        with Connection(URL, {"Authorization": f"Bearer {token}"}) as connection:
            # One request a second: without waiting, at least the last one of these would be refused.
            for _ in range(3):
                self.assertIn("items", connection.get("/api/accounts/", {"limit": 1}))


if __name__ == "__main__":
    unittest.main()
