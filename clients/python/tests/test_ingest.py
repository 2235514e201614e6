"""Sending events now, against the real service."""

import json
import unittest
from datetime import UTC, datetime, timedelta

from rapport_client import ErrorResponse, Ingest, Rejected, RetryPolicy
from rapport_client.ingest import Event
from rapport_client.models import ActivityEvent, ActivityKind
from support import INGEST_KEY, URL, Drop, Proxy, account, call, new_id, usage

QUICK = RetryPolicy(first_delay=0.001)


class Sending(unittest.TestCase):
    def setUp(self) -> None:
        self.proxy = Proxy()
        self.addCleanup(self.proxy.close)
        self.ingest = Ingest(self.proxy.url, INGEST_KEY, retry=QUICK)
        self.addCleanup(self.ingest.close)
        self.account = new_id()
        call("POST", "/api/accounts/", {"name": "Nordlys", "imported_id": self.account})

    def use(self, feature: str = "app.export") -> dict[str, object]:
        return {"kind": "feature_used", "imported_id": self.account, "feature": feature}

    def test_sends_full_compressed_batches(self) -> None:
        report = self.ingest.send(self.use() for _ in range(250))
        self.assertEqual((report.accepted, report.duplicates, report.unmatched, report.rejected), (250, 0, [], []))
        self.assertEqual(usage(self.account), {"app.export": 250})
        self.assertEqual(len(self.proxy.requests), 3)
        self.assertTrue(all(request.headers["content-encoding"] == "gzip" for request in self.proxy.requests))

    def test_repeats_count_once(self) -> None:
        self.proxy.steps += [Drop(after=True), Drop(after=False), Drop(after=True)]
        report = self.ingest.send([self.use(), self.use(), self.use()])
        self.assertEqual((report.accepted, report.duplicates), (0, 3))
        self.assertEqual(usage(self.account), {"app.export": 3})
        bodies = {request.body for request in self.proxy.requests}
        self.assertEqual((len(self.proxy.requests), len(bodies)), (4, 1))

    def test_names_what_was_not_accepted(self) -> None:
        events: list[Event] = [self.use(), {"kind": "bogus", "imported_id": self.account}, self.use()]
        events += [{"kind": "app_opened", "imported_id": "nobody", "index": 7}]
        # In the second batch, the indexes begin again.
        events += [self.use() for _ in range(100)] + [{"kind": "feature_used", "imported_id": self.account}]
        report = self.ingest.send(events)
        self.assertEqual(report.accepted, 102)
        self.assertEqual(
            [(r.code, r.field) for r in report.rejected], [("unknown_kind", "kind"), ("required", "feature")]
        )
        self.assertEqual(report.rejected[0].event["kind"], "bogus")
        self.assertEqual(report.rejected[1].event["kind"], "feature_used")
        self.assertEqual([event["imported_id"] for event in report.unmatched], ["nobody"])

    def test_a_batch_of_invalid_events_is_a_result(self) -> None:
        report = self.ingest.send([{"kind": "bogus", "imported_id": self.account}, {"kind": "app_opened"}])
        self.assertEqual(report.accepted, 0)
        self.assertEqual([type(rejected) for rejected in report.rejected], [Rejected, Rejected])

    def test_ids_of_your_own_make_calls_repeatable(self) -> None:
        events = [{**self.use(), "event_id": new_id()} for _ in range(3)]
        self.assertEqual(self.ingest.send(events).accepted, 3)
        self.assertEqual(self.ingest.send(events).duplicates, 3)
        self.assertEqual(usage(self.account), {"app.export": 3})

    def test_takes_generated_models_and_times(self) -> None:
        yesterday = datetime.now(UTC) - timedelta(days=1)
        model = ActivityEvent(kind=ActivityKind.TRIAL_STARTED, imported_id=self.account, occurred_at=yesterday)
        self.assertEqual(self.ingest.send([model]).accepted, 1)
        after = account(self.account)
        self.assertEqual(after["status"], "in_trial")
        self.assertEqual(datetime.fromisoformat(after["last_seen_at"]), yesterday)

    def test_an_event_keeps_the_time_at_which_it_was_sent_first(self) -> None:
        before = datetime.now(UTC)
        self.ingest.send([self.use()])
        (sent,) = json.loads(self.proxy.requests[0].body)["events"]
        self.assertTrue(before <= datetime.fromisoformat(sent["occurred_at"]) <= datetime.now(UTC))

    def test_a_wrong_key_raises(self) -> None:
        with Ingest(URL, "unknown") as stranger, self.assertRaises(ErrorResponse) as raised:
            stranger.send([self.use()])
        self.assertEqual(raised.exception.status, 401)

    def test_nothing_is_sent_for_nothing_or_no_json(self) -> None:
        self.assertEqual(self.ingest.send([]).accepted, 0)
        with self.assertRaisesRegex(ValueError, "event 0: .*no time zone"):
            self.ingest.send([{**self.use(), "occurred_at": datetime(2026, 5, 12)}])
        self.assertEqual(self.proxy.requests, [])


if __name__ == "__main__":
    unittest.main()
