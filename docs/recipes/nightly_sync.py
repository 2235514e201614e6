"""Sends a table of customers to Rapport, every night: nightly_sync.py DATABASE

RAPPORT_URL, RAPPORT_PROJECT and RAPPORT_TOKEN say where to. nightly-sync.md explains it.
"""

import os
import sqlite3
import sys
from collections.abc import Iterator

from rapport_client import Upserter
from rapport_client.upsert import Record

# The stages of our CRM, and what Rapport calls them.
STAGES = {"lead": "prospect", "called": "contacted", "offer": "in_negotiation", "won": "customer", "lost": "lost"}


def records(database: sqlite3.Connection) -> Iterator[Record]:
    """The table, row by row, so that it needn't fit into memory."""
    rows = database.execute("SELECT id, name, stage, plan, seats, contract_value, currency FROM customer ORDER BY id")
    for identity, name, stage, plan, seats, value, currency in rows:
        record: dict[str, object] = {
            "imported_id": str(identity),
            "name": name,
            "status": STAGES[stage],
            # Null deletes the field. Fields that aren't named here stay as they are.
            "custom_fields": {"plan": plan, "seats": seats},
        }
        if value is not None:
            record["captured_value"] = value
            record["captured_value_currency"] = currency
        yield record


created = changed = unchanged = refused = 0
with (
    sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True) as database,
    Upserter(os.environ["RAPPORT_URL"], os.environ["RAPPORT_TOKEN"], os.environ["RAPPORT_PROJECT"]) as crm,
):
    # `update`: our CRM decides about names. `forward`: it doesn't undo what clients did since.
    for outcome in crm.upsert_many(records(database), name_policy="update", status_policy="forward"):
        if outcome.reply is None:
            refused += 1
            print(f"refused: row {outcome.index}: {outcome.error}", file=sys.stderr)
        elif outcome.reply.created:
            created += 1
        elif outcome.reply.changed:
            changed += 1
        else:
            unchanged += 1
print(f"{created} created, {changed} changed, {unchanged} unchanged, {refused} refused")
sys.exit(1 if refused else 0)
