"""Copies events and accounts into a warehouse, from where the last run ended: warehouse.py DATABASE

RAPPORT_URL and RAPPORT_TOKEN say where from. warehouse.md explains it.
"""

import json
import os
import sqlite3
import sys
from collections.abc import Callable
from typing import Any

from rapport_client import Connection, ErrorResponse

TABLES = """
CREATE TABLE IF NOT EXISTS event (
    id TEXT PRIMARY KEY, type TEXT NOT NULL, account TEXT, created_at TEXT NOT NULL, payload TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS account (
    id TEXT PRIMARY KEY, imported_id TEXT, name TEXT NOT NULL, status TEXT NOT NULL, captured_value TEXT,
    captured_value_currency TEXT, custom_fields TEXT NOT NULL, updated_at TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS cursor (feed TEXT PRIMARY KEY, value TEXT NOT NULL);
"""
PAGE = 200

Page = dict[str, Any]


def store_events(database: sqlite3.Connection, page: Page) -> None:
    """An event never changes, so one that is here already is a repetition."""
    database.executemany(
        "INSERT INTO event VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        [
            (event["id"], event["type"], event["data"]["account"]["id"], event["created_at"], json.dumps(event))
            for event in page["items"]
        ],
    )


def store_accounts(database: sqlite3.Connection, page: Page) -> None:
    """An account comes as it is now, so it replaces what is here."""
    database.executemany(
        "INSERT OR REPLACE INTO account VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                account["id"],
                account["imported_id"],
                account["name"],
                account["status"],
                account["captured_value"],
                account["captured_value_currency"],
                json.dumps(account["custom_fields"]),
                account["updated_at"],
            )
            for account in page["items"]
        ],
    )
    database.executemany("DELETE FROM account WHERE id = ?", [(account["id"],) for account in page["deleted"]])


def forget_accounts(database: sqlite3.Connection) -> None:
    """Deletions are known for 90 days. After that only a new copy is right."""
    database.execute("DELETE FROM account")


def follow(
    path: str,
    params: dict[str, str],
    store: Callable[[sqlite3.Connection, Page], None],
    begin: Callable[[sqlite3.Connection], None] | None = None,
) -> int:
    """Stores everything that is new, and returns how much that was. `begin` prepares for reading from the beginning."""
    (cursor,) = database.execute("SELECT max(value) FROM cursor WHERE feed = ?", (path,)).fetchone()
    count = 0
    while True:
        try:
            page = rapport.get(path, {**params, "limit": PAGE, **({"cursor": cursor} if cursor else {})})
        except ErrorResponse as error:
            if not any(one["code"] == "cursor_expired" for one in error.errors):
                raise
            # The last run was more than 90 days ago. Begin again; events that are here already are recognized.
            cursor = None
            continue
        first, cursor = cursor is None, page["next_cursor"]
        # The page and the cursor in one transaction: neither a crash nor a repetition can separate them.
        with database:
            if first and begin:
                begin(database)
            store(database, page)
            database.execute("INSERT OR REPLACE INTO cursor VALUES (?, ?)", (path, cursor))
        count += len(page["items"])
        if not page["has_more"]:
            return count


database = sqlite3.connect(sys.argv[1])
database.executescript(TABLES)
with Connection(os.environ["RAPPORT_URL"], {"Authorization": f"Bearer {os.environ['RAPPORT_TOKEN']}"}) as rapport:
    events = follow("/api/events/", {}, store_events)
    accounts = follow("/api/accounts/", {"sort": "updated_at", "deleted": "true"}, store_accounts, forget_accounts)
database.close()
print(f"{events} events, {accounts} accounts")
