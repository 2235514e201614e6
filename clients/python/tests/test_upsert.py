"""Upserts against the real service."""

import gzip
import json
import unittest
from datetime import datetime
from decimal import Decimal

import httpx
from rapport_client import ErrorResponse, RetryPolicy, Upserter
from rapport_client.models import Status, UpsertBatchAccount, UpsertOutcome, UpsertRequest
from rapport_client.upsert import Record
from support import INGEST_KEY, PROJECT, TOKEN, URL, Drop, Proxy, account, new_id

QUICK = RetryPolicy(first_delay=0.001)


class Single(unittest.TestCase):
    def setUp(self) -> None:
        self.upserter = Upserter(URL, TOKEN, PROJECT)
        self.addCleanup(self.upserter.close)

    def test_creates_then_changes_then_leaves_alone(self) -> None:
        imported_id = new_id()
        record = {"imported_id": imported_id, "name": "Nordlys AS", "captured_value": Decimal("1200.50")}
        created = self.upserter.upsert(record)
        self.assertTrue(created.created)
        self.assertEqual((created.account.name, created.account.captured_value), ("Nordlys AS", "1200.50"))
        changed = self.upserter.upsert({"imported_id": imported_id, "status": "contacted"})
        self.assertEqual((changed.created, changed.changed), (False, ["status"]))
        self.assertIs(changed.account.status, Status.CONTACTED)
        self.assertEqual(self.upserter.upsert({"imported_id": imported_id, "status": "contacted"}).changed, [])

    def test_takes_generated_models(self) -> None:
        imported_id = new_id()
        request = UpsertRequest(project=PROJECT, imported_id=imported_id, status=Status.IN_NEGOTIATION)
        self.assertIs(self.upserter.upsert(request).account.status, Status.IN_NEGOTIATION)
        again = UpsertBatchAccount(imported_id=imported_id, name="Fjell")
        self.assertEqual(self.upserter.upsert(again).ignored, ["name"])

    def test_null_clears_the_value(self) -> None:
        imported_id = new_id()
        self.upserter.upsert({"imported_id": imported_id, "captured_value": "5"})
        self.upserter.upsert({"imported_id": imported_id, "captured_value": None})
        self.assertIsNone(account(imported_id)["captured_value"])

    def test_a_refusal_names_the_member(self) -> None:
        with self.assertRaises(ErrorResponse) as raised:
            self.upserter.upsert({"imported_id": new_id(), "status": "bogus"})
        error = raised.exception
        self.assertEqual((error.status, error.code), (422, "invalid"))
        self.assertEqual([member["pointer"] for member in error.errors], ["/status"])
        self.assertIn("/status", str(error))

    def test_another_company_is_refused(self) -> None:
        with Upserter(URL, TOKEN, "somebody-else") as stranger, self.assertRaises(ErrorResponse) as raised:
            stranger.upsert({"imported_id": new_id()})
        self.assertEqual((raised.exception.status, raised.exception.code), (403, "foreign_project"))

    def test_a_lost_response_is_asked_for_again(self) -> None:
        table = [
            # With keys, the service repeats its first response. Without, the second request finds the account.
            (True, True),
            (False, False),
        ]
        for idempotency_keys, created in table:
            with self.subTest(idempotency_keys=idempotency_keys):
                proxy = Proxy(Drop(after=True))
                self.addCleanup(proxy.close)
                imported_id = new_id()
                upserter = Upserter(proxy.url, TOKEN, PROJECT, idempotency_keys=idempotency_keys, retry=QUICK)
                self.addCleanup(upserter.close)
                self.assertEqual(upserter.upsert({"imported_id": imported_id}).created, created)
                self.assertEqual(len(proxy.requests), 2)
                self.assertEqual(account(imported_id)["imported_id"], imported_id)

    def test_a_key_of_your_own_works_across_programs(self) -> None:
        imported_id, key = new_id(), new_id()
        for _ in range(2):
            with Upserter(URL, TOKEN, PROJECT) as program:
                self.assertTrue(program.upsert({"imported_id": imported_id}, idempotency_key=key).created)


class Many(unittest.TestCase):
    def setUp(self) -> None:
        self.proxy = Proxy()
        self.addCleanup(self.proxy.close)
        self.upserter = Upserter(self.proxy.url, TOKEN, PROJECT, retry=QUICK)
        self.addCleanup(self.upserter.close)

    def batch_sizes(self) -> list[int]:
        bodies = [
            gzip.decompress(request.body) if request.headers.get("content-encoding") == "gzip" else request.body
            for request in self.proxy.requests
        ]
        return [len(json.loads(body)["accounts"]) for body in bodies]

    def test_sends_full_batches_and_says_what_came_of_each_record(self) -> None:
        prefix = new_id()
        records: list[dict[str, object]] = [{"imported_id": f"{prefix}-{index}"} for index in range(1203)]
        records[700]["status"] = "bogus"
        outcomes = list(self.upserter.upsert_many(iter(records)))
        self.assertEqual(self.batch_sizes(), [500, 500, 203])
        self.assertEqual([outcome.index for outcome in outcomes], list(range(1203)))
        self.assertTrue(all(outcome.record is records[outcome.index] for outcome in outcomes))
        refused = [outcome for outcome in outcomes if outcome.error]
        self.assertEqual([(outcome.index, outcome.status) for outcome in refused], [(700, 422)])
        assert refused[0].error is not None and refused[0].error.errors
        self.assertEqual(refused[0].error.errors[0].pointer, "/accounts/200/status")
        replies = [outcome.reply for outcome in outcomes if outcome.reply]
        self.assertEqual(len(replies), 1202)
        self.assertEqual(replies[0].account.imported_id, f"{prefix}-0")
        self.assertTrue(all(request.headers["content-encoding"] == "gzip" for request in self.proxy.requests))

    def test_a_batch_fits_into_a_request(self) -> None:
        prefix = new_id()
        # 30 KiB each: 34 of them fit into a request.
        records = [{"imported_id": f"{prefix}-{index}", "custom_fields": {"text": "x" * 30_000}} for index in range(80)]
        outcomes = list(self.upserter.upsert_many(records))
        self.assertEqual([outcome.status for outcome in outcomes], [201] * 80)
        self.assertEqual(self.batch_sizes(), [34, 34, 12])

    def test_a_record_that_fits_into_no_request_does_not_stop_the_others(self) -> None:
        prefix = new_id()
        records: list[Record] = [
            {"imported_id": f"{prefix}-0"},
            {"imported_id": f"{prefix}-1", "custom_fields": {"text": "x" * 1_100_000}},
            {"imported_id": f"{prefix}-2"},
        ]
        outcomes = list(self.upserter.upsert_many(records))
        self.assertEqual([outcome.status for outcome in outcomes], [201, 413, 201])
        assert outcomes[1].error is not None
        self.assertEqual(outcomes[1].error.code, "body_too_large")

    def test_policies_keep_what_activity_did(self) -> None:
        imported_id = new_id()
        record = {"imported_id": imported_id, "name": "Nordlys", "status": "contacted"}
        list(self.upserter.upsert_many([record]))
        events = {"events": [{"imported_id": imported_id, "kind": "trial_started"}]}
        report(events)
        record["name"] = "Nordlys AS"
        (outcome,) = self.upserter.upsert_many([record], name_policy="update", status_policy="forward")
        assert outcome.reply is not None
        self.assertIs(outcome.reply.status_outcome, UpsertOutcome.KEPT)
        self.assertIs(outcome.reply.name_outcome, UpsertOutcome.SET)
        after = account(imported_id)
        self.assertEqual((after["name"], after["status"]), ("Nordlys AS", "in_trial"))

    def test_a_lost_response_is_asked_for_again(self) -> None:
        self.proxy.steps.append(Drop(after=True))
        prefix = new_id()
        with Upserter(self.proxy.url, TOKEN, PROJECT, idempotency_keys=True, retry=QUICK) as upserter:
            outcomes = list(upserter.upsert_many({"imported_id": f"{prefix}-{index}"} for index in range(3)))
        self.assertEqual([outcome.status for outcome in outcomes], [201, 201, 201])
        self.assertEqual(len(self.proxy.requests), 2)

    def test_nothing_is_sent_for_nothing(self) -> None:
        self.assertEqual(list(self.upserter.upsert_many([])), [])
        self.assertEqual(self.proxy.requests, [])

    def test_a_record_that_is_no_json_is_named(self) -> None:
        table: list[tuple[object, str]] = [
            (datetime(2026, 5, 12), "no time zone"),
            (object(), "can't be written as JSON"),
            (float("nan"), "not JSON compliant"),
        ]
        for value, reason in table:
            with self.subTest(reason=reason), self.assertRaisesRegex(ValueError, f"record 1: .*{reason}"):
                list(self.upserter.upsert_many([{"imported_id": "a"}, {"imported_id": "b", "name": value}]))
        self.assertEqual(self.proxy.requests, [])

    def test_a_refused_request_raises(self) -> None:
        with Upserter(URL, "unknown", PROJECT) as stranger, self.assertRaises(ErrorResponse) as raised:
            list(stranger.upsert_many([{"imported_id": "a"}]))
        self.assertEqual(raised.exception.status, 401)


def report(body: object) -> None:
    """Reports activity without the package."""
    response = httpx.post(f"{URL}/api/pulse/ingest/", json=body, headers={"X-Service-Ingest-Key": INGEST_KEY})
    assert response.json()["accepted"] == 1, response.text


if __name__ == "__main__":
    unittest.main()
