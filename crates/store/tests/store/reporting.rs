//! The views for people's own SQL on PostgreSQL: they survive upgrades with everything that depends on them, show every
//! table worth reporting on, no secret, and ids as the API does.

use postgres::{Client, NoTls};
use rapport_domain::id::{AccountId, AuditId, EventId, HistoryId, PersonId};
use rapport_store::{Database, migrate_only};
use rapport_testkit::{PostgresServer, old_database};

/// Tables that no view shows, because they only serve the service itself or hold what nobody should read.
const HIDDEN: [&str; 42] = [
    "account_change",
    "account_site",
    "account_tombstone",
    "account_word",
    "activity_day",
    "address_change",
    "bulk_change",
    "change_clock",
    "channel_count",
    "channel_total",
    "claimed_domain",
    "company_deletion",
    "digest_schedule",
    "encryption_key",
    "event_mark",
    "fan_out",
    "field_fill",
    "import_account",
    "import_change",
    "import_chunk",
    "import_mapping",
    "import_word",
    "kept_response",
    "mail_budget",
    "mail_content",
    "mail_reference",
    "manual_attempt",
    "node",
    "passkey",
    "password_reset",
    "recovery_code",
    "removed_member",
    "reset_request",
    "schema_version",
    "session",
    "spent_challenge",
    "sso",
    "sso_identity",
    "stage_total",
    "submission",
    "subscription",
    "totp",
];
/// What tables that are shown keep to themselves.
const SECRETS: [(&str, &str); 7] = [
    ("attempt", "excerpt"),
    ("credential", "hash"),
    ("invitation", "hash"),
    ("person", "password_hash"),
    ("webhook", "header_secrets"),
    ("webhook", "headers"),
    ("webhook", "secret"),
];
/// As the last release before version 18 created them.
const OLD_VIEWS: &str = "
    CREATE SCHEMA reporting;
    CREATE VIEW reporting.account AS
    SELECT c.slug AS project, encode(a.id, 'hex') AS id, a.imported_id, a.name, a.status,
           a.custom_fields::jsonb AS custom_fields,
           a.value_amount / 10000.0::numeric AS captured_value, a.value_currency AS captured_value_currency,
           ch.name AS channel, a.promo_code,
           to_timestamp(a.acquired_at / 1e6) AS acquired_at,
           to_timestamp(a.last_contact_at / 1e6) AS last_contact_at,
           to_timestamp(s.first_seen_at / 1e6) AS first_seen_at,
           to_timestamp(s.last_seen_at / 1e6) AS last_seen_at,
           to_timestamp(a.created_at / 1e6) AS created_at,
           to_timestamp(a.updated_at / 1e6) AS updated_at
    FROM account a
    JOIN company c ON c.id = a.company
    LEFT JOIN channel ch ON ch.company = a.company AND ch.id = a.channel
    LEFT JOIN account_seen s ON s.company = a.company AND s.account = a.id;
    CREATE VIEW reporting.status_history AS
    SELECT c.slug AS project, encode(h.account, 'hex') AS account, h.from_status, h.to_status, h.source,
           h.actor_kind, h.actor_name, h.note, to_timestamp(h.at / 1e6) AS at
    FROM status_history h
    JOIN company c ON c.id = h.company;
    CREATE VIEW reporting.activity AS
    SELECT c.slug AS project, encode(a.account, 'hex') AS account, a.kind, a.feature,
           a.metadata::jsonb AS metadata, to_timestamp(a.occurred_at / 1e6) AS occurred_at,
           to_timestamp(a.received_at / 1e6) AS received_at
    FROM activity a
    JOIN company c ON c.id = a.company;";
const OF_AN_OPERATOR: &str = "
    CREATE ROLE reporting_test_analyst;
    GRANT USAGE ON SCHEMA reporting TO reporting_test_analyst;
    GRANT SELECT ON reporting.account TO reporting_test_analyst;
    CREATE SCHEMA own;
    CREATE VIEW own.customers AS SELECT id, name FROM reporting.account WHERE status = 'customer'";

fn old() -> (Database, Client) {
    let url = PostgresServer::shared().fresh_database();
    let database = Database::Postgres(url.clone());
    old_database::create(&database, 8);
    (database, Client::connect(&url, NoTls).expect("connected"))
}

fn upgraded() -> Client {
    let (database, client) = old();
    migrate_only(&database).expect("migrated");
    client
}

fn texts(client: &mut Client, sql: &str) -> Vec<String> {
    client.query(sql, &[]).expect("read").iter().map(|row| row.get(0)).collect()
}

#[test]
fn an_upgrade_keeps_what_people_built_on_the_views() {
    let (database, mut client) = old();
    client.batch_execute(OLD_VIEWS).expect("the views of the last release");
    client.batch_execute(OF_AN_OPERATOR).expect("a grant and a dependent view");
    migrate_only(&database).expect("migrated");
    client.batch_execute("SET ROLE reporting_test_analyst").expect("switched");
    let ids = texts(&mut client, "SELECT id FROM reporting.account ORDER BY id");
    assert_eq!(ids.len(), 8);
    assert!(ids.iter().all(|id| id.parse::<AccountId>().is_ok()), "{ids:?}");
    client.batch_execute("RESET ROLE").expect("switched back");
    let customers = texts(&mut client, "SELECT id FROM own.customers");
    assert_eq!(customers.len(), 2);
    assert!(customers.iter().all(|id| ids.contains(id)), "{customers:?}");
}

#[test]
fn a_view_that_cannot_be_replaced_is_reported_and_left_alone() {
    let (database, mut client) = old();
    let changed = "CREATE SCHEMA reporting; CREATE VIEW reporting.account AS SELECT 1 AS mine";
    client.batch_execute(changed).expect("a view of someone else");
    let refused = migrate_only(&database).expect_err("refused").to_string();
    assert!(refused.contains("reporting schema") && refused.contains("view column \"mine\""), "{refused}");
    assert_eq!(texts(&mut client, "SELECT mine::text FROM reporting.account"), ["1"]);
    client.batch_execute("DROP VIEW reporting.account").expect("dropped");
    migrate_only(&database).expect("migrated");
    assert_eq!(texts(&mut client, "SELECT id FROM reporting.account").len(), 8);
}

#[test]
fn ids_are_those_of_the_api() {
    let mut client = upgraded();
    let mut bytes = [0_u8; 16];
    for round in 0..64_u8 {
        for (place, byte) in (0_u8..).zip(&mut bytes) {
            *byte = byte.wrapping_mul(31).wrapping_add(round ^ place.wrapping_mul(97)).rotate_left(3);
        }
        let sql = "SELECT reporting.id_text('acc_', $1), reporting.id_text('evt_', $1)";
        let row = client.query_one(sql, &[&bytes.as_slice()]).expect("encoded");
        assert_eq!(row.get::<_, String>(0), AccountId::from_bytes(bytes).to_string());
        assert_eq!(row.get::<_, String>(1), EventId::from_bytes(bytes).to_string());
    }
    for bytes in [[0_u8; 16], [0xff; 16]] {
        let row =
            client.query_one("SELECT reporting.id_text('acc_', $1)", &[&bytes.as_slice()]).expect("encoded");
        assert_eq!(row.get::<_, String>(0), AccountId::from_bytes(bytes).to_string());
    }
    for (sql, is_id) in [
        ("SELECT id FROM reporting.account", (|text| text.parse::<AccountId>().is_ok()) as fn(&str) -> bool),
        ("SELECT account FROM reporting.activity", |text| text.parse::<AccountId>().is_ok()),
        ("SELECT account FROM reporting.activity_per_day", |text| text.parse::<AccountId>().is_ok()),
        ("SELECT account FROM reporting.cadence", |text| text.parse::<AccountId>().is_ok()),
        ("SELECT id FROM reporting.status_history", |text| text.parse::<HistoryId>().is_ok()),
        ("SELECT id FROM reporting.event", |text| text.parse::<EventId>().is_ok()),
        ("SELECT id FROM reporting.audit", |text| text.parse::<AuditId>().is_ok()),
        ("SELECT person FROM reporting.member", |text| text.parse::<PersonId>().is_ok()),
    ] {
        let found = texts(&mut client, sql);
        assert!(!found.is_empty() && found.iter().all(|text| is_id(text)), "{sql}: {found:?}");
    }
}

#[test]
fn every_table_is_shown_or_hidden_on_purpose() {
    let mut client = upgraded();
    let tables =
        texts(&mut client, "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public' ORDER BY 1");
    let shown = texts(
        &mut client,
        "SELECT DISTINCT table_name::text FROM information_schema.view_table_usage \
         WHERE view_schema = 'reporting' AND table_schema = 'public'",
    );
    for table in &tables {
        let is_hidden = HIDDEN.contains(&table.as_str());
        assert!(
            shown.contains(table) != is_hidden,
            "{table}: show it in reporting.postgres.sql, or list it here"
        );
    }
    for table in HIDDEN {
        assert!(tables.iter().any(|known| known == table), "{table} doesn't exist");
    }
    let read = "SELECT count(*) FROM information_schema.view_column_usage \
                WHERE view_schema = 'reporting' AND table_name = $1 AND column_name = $2";
    for (table, column) in SECRETS {
        let uses: i64 = client.query_one(read, &[&table, &column]).expect("read").get(0);
        assert_eq!(uses, 0, "{table}.{column}");
    }
    for view in texts(&mut client, "SELECT viewname::text FROM pg_views WHERE schemaname = 'reporting'") {
        client
            .query(&format!("SELECT * FROM reporting.{view}"), &[])
            .unwrap_or_else(|error| panic!("{view}: {error}"));
    }
}

#[test]
fn a_webhook_shows_only_the_host_of_its_url() {
    let mut client = upgraded();
    for (url, host) in [
        ("https://hooks.acme.test/T0/secret", "hooks.acme.test"),
        ("https://ada:secret@hooks.acme.test:8443?key=secret", "hooks.acme.test:8443"),
        ("http://[::1]:9000/secret", "[::1]:9000"),
    ] {
        let sql = "INSERT INTO webhook (company, id, url, description, events, disabled_by_hand, failure_streak, \
                   url_changed_at, secret, secret_shown, dropped_before, created_at, updated_at) \
                   VALUES (1, decode(repeat('00', 16), 'hex'), $1, '', '', 0, 0, 1, '', '', 0, 1, 1) \
                   ON CONFLICT (company, id) DO UPDATE SET url = excluded.url";
        client.execute(sql, &[&url]).expect("inserted");
        assert_eq!(texts(&mut client, "SELECT host FROM reporting.webhook"), [host]);
    }
}
