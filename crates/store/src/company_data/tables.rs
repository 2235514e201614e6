//! Every table with rows of a company: its key after the company, what an export says of it, and how its rows belong to
//! an account.
//!
//! Not exported are secrets and their hashes, sessions, the texts of mails, imported files, and what is derived from
//! other tables or only serves the service itself.

use super::shape::Shape::{self, Actor, Amount, Day, Entry, Flag, Id, Json, Number, Rate, Text, Time, Word};
use super::way::{Key, Way};
use crate::statement::DeleteMany;
use crate::value::Type;

/// How many rows a page of an export has and a step of the deletion takes; fewer of a table with large ones.
const ROWS: i64 = 100;
const FEW_ROWS: i64 = 20;

pub struct Table {
    pub name: &'static str,
    /// The primary key without the company, or the columns that stand for one.
    pub keys: &'static [(&'static str, Type)],
    pub delete: DeleteMany,
    /// In the order in which they are read. None if the table isn't exported.
    pub columns: &'static [(&'static str, Shape)],
    pub left_out: &'static [&'static str],
    pub rows: i64,
    /// Another table that tells more.
    pub join: &'static str,
    /// How the rows of one account are found. None if they say nothing about an account, or aren't exported.
    pub of_account: Option<Way>,
}

pub type Keys = &'static [(&'static str, Type)];
type Columns = &'static [(&'static str, Shape)];

impl Table {
    const fn exported(
        name: &'static str,
        keys: Keys,
        columns: Columns,
        left_out: &'static [&'static str],
    ) -> Self {
        let delete = DeleteMany::new(name, keys);
        Self { name, keys, delete, columns, left_out, rows: ROWS, join: "", of_account: None }
    }

    /// With large rows.
    const fn wide(
        name: &'static str,
        keys: Keys,
        columns: Columns,
        left_out: &'static [&'static str],
    ) -> Self {
        let delete = DeleteMany::new(name, keys);
        Self { name, keys, delete, columns, left_out, rows: FEW_ROWS, join: "", of_account: None }
    }

    const fn internal(name: &'static str, keys: Keys) -> Self {
        Self::exported(name, keys, &[], &[])
    }

    const fn wide_internal(name: &'static str, keys: Keys) -> Self {
        Self::wide(name, keys, &[], &[])
    }

    /// With rows about accounts, which are found this way.
    const fn of_account(mut self, way: Way) -> Self {
        self.of_account = Some(way);
        self
    }
}

const ID: Keys = &[("id", Type::Bytes)];
const ACCOUNT: Keys = &[("account", Type::Bytes)];
const ACCOUNT_AND_ID: Keys = &[("account", Type::Bytes), ("id", Type::Bytes)];
const PERSON: Keys = &[("person", Type::Bytes)];

/// The rest of a key that begins with the account.
const BY_ID: Keys = &[("t.id", Type::Bytes)];
const BY_ACCOUNT: Keys = &[("t.account", Type::Bytes)];

pub static TABLES: [Table; 58] = [
    Table {
        name: "member",
        keys: PERSON,
        delete: DeleteMany::new("member", PERSON),
        columns: &[
            ("person", Id("per_")),
            ("p.name", Text),
            ("p.email", Text),
            ("role", Text),
            ("created_at", Time),
            ("deactivated_at", Time),
        ],
        left_out: &[],
        rows: ROWS,
        join: " JOIN person p ON p.id = t.person",
        of_account: None,
    },
    Table::exported(
        "invitation",
        ID,
        &[
            ("id", Id("inv_")),
            ("email", Text),
            ("name", Text),
            ("role", Text),
            ("invited_by", Text),
            ("by_mail", Flag),
            ("created_at", Time),
            ("expires_at", Time),
        ],
        &["hash"],
    ),
    Table::exported(
        "credential",
        &[("hash", Type::Bytes)],
        &[
            ("id", Id("crd_")),
            ("kind", Text),
            ("name", Text),
            ("role", Text),
            ("created_at", Time),
            ("last_used_at", Time),
            ("person", Id("per_")),
            ("expires_at", Time),
            ("rate_limit", Number),
        ],
        &["hash", "shown"],
    ),
    Table::exported(
        "sso",
        ID,
        &[
            ("mode", Text),
            ("issuer", Text),
            ("client_id", Text),
            ("domains", Text),
            ("role", Text),
            ("break_glass", Id("per_")),
            ("updated_at", Time),
        ],
        &["id", "secret"],
    ),
    Table::exported(
        "sso_identity",
        &[("issuer", Type::Text), ("subject", Type::Text)],
        &[
            ("issuer", Text),
            ("subject", Text),
            ("person", Id("per_")),
            ("email", Text),
            ("created_at", Time),
            ("last_login_at", Time),
        ],
        &[],
    ),
    Table::exported(
        "claimed_domain",
        &[("domain", Type::Text)],
        &[("domain", Text), ("claimed_at", Time)],
        &[],
    ),
    Table::exported(
        "channel",
        ID,
        &[("id", Id("chn_")), ("name", Text), ("sample", Flag), ("created_at", Time)],
        &["name_folded"],
    ),
    Table::exported(
        "promo_code",
        &[("code_folded", Type::Text)],
        &[("code", Text), ("channel", Id("chn_")), ("archived_at", Time), ("created_at", Time)],
        &["code_folded"],
    ),
    Table::exported(
        "exchange_rate",
        ID,
        &[
            ("id", Id("rat_")),
            ("base", Text),
            ("currency", Text),
            ("valid_from", Day),
            ("rate", Rate),
            ("created_at", Time),
        ],
        &[],
    ),
    Table::exported(
        "campaign",
        ID,
        &[
            ("id", Id("cmp_")),
            ("name", Text),
            ("goal", Text),
            ("include_trials", Flag),
            ("filters", Json),
            ("created_at", Time),
            ("updated_at", Time),
        ],
        &["name_folded"],
    ),
    Table::exported(
        "saved_view",
        &[("name_folded", Type::Text)],
        &[("name", Text), ("query", Text), ("created_at", Time), ("created_by", Id("per_"))],
        &["name_folded"],
    ),
    Table::exported(
        "account",
        ID,
        &[
            ("id", Id("acc_")),
            ("imported_id", Text),
            ("name", Text),
            ("status", Text),
            ("custom_fields", Json),
            ("value_amount", Amount),
            ("value_currency", Text),
            ("channel", Id("chn_")),
            ("promo_code", Text),
            ("acquired_at", Time),
            ("last_contact_at", Time),
            ("imported_contact_at", Time),
            ("cadence_days", Number),
            ("snoozed_until", Text),
            ("tracked_since", Time),
            ("campaign_hold", Flag),
            ("sample", Flag),
            ("created_at", Time),
            ("updated_at", Time),
        ],
        &["change", "name_folded"],
    )
    .of_account(Way::Directly { condition: "t.id = $2", key: Key::Id, index: "", order: BY_ID }),
    Table::exported(
        "account_tombstone",
        ACCOUNT,
        &[("account", Id("acc_")), ("imported_id", Text), ("deleted_at", Time)],
        &["change"],
    )
    .of_account(Way::column("", BY_ACCOUNT)),
    Table::exported(
        "account_address",
        &[("address", Type::Text)],
        &[("address", Text), ("account", Id("acc_")), ("created_at", Time)],
        &[],
    )
    .of_account(Way::column("account_address_by_account", &[("t.address", Type::Text)])),
    Table::exported("account_site", &[("site", Type::Text)], &[("site", Text), ("account", Id("acc_"))], &[])
        .of_account(Way::column("account_site_by_account", &[("t.site", Type::Text)])),
    Table::exported(
        "account_seen",
        ACCOUNT,
        &[("account", Id("acc_")), ("first_seen_at", Time), ("last_seen_at", Time)],
        &["last_seen_day", "last_seen_minute"],
    )
    .of_account(Way::column("", BY_ACCOUNT)),
    Table::exported(
        "status_history",
        ACCOUNT_AND_ID,
        &[
            ("id", Id("his_")),
            ("account", Id("acc_")),
            ("from_status", Text),
            ("to_status", Text),
            ("source", Text),
            ("actor_kind", Text),
            ("actor_id", Actor("actor_kind")),
            ("actor_name", Text),
            ("note", Text),
            ("at", Time),
            ("happened_at", Time),
        ],
        &[],
    )
    .of_account(Way::column("", BY_ID)),
    Table::exported(
        "contact",
        ACCOUNT_AND_ID,
        &[
            ("id", Id("ctc_")),
            ("account", Id("acc_")),
            ("kind", Text),
            ("note", Text),
            ("actor_kind", Text),
            ("actor_id", Actor("actor_kind")),
            ("actor_name", Text),
            ("occurred_at", Time),
            ("created_at", Time),
        ],
        &[],
    )
    .of_account(Way::column("", BY_ID)),
    Table::exported(
        "note",
        ACCOUNT_AND_ID,
        &[
            ("id", Id("nte_")),
            ("account", Id("acc_")),
            ("text", Text),
            ("pinned", Flag),
            ("author_kind", Text),
            ("author_id", Actor("author_kind")),
            ("author_name", Text),
            ("created_at", Time),
        ],
        &[],
    )
    .of_account(Way::column("", BY_ID)),
    Table::wide(
        "correction",
        ACCOUNT_AND_ID,
        &[
            ("id", Id("cor_")),
            ("account", Id("acc_")),
            ("entry_kind", Text),
            ("entry", Entry("entry_kind")),
            ("act", Text),
            ("author_kind", Text),
            ("author_id", Actor("author_kind")),
            ("author_name", Text),
            ("actor_kind", Text),
            ("actor_id", Actor("actor_kind")),
            ("actor_name", Text),
            ("fields", Text),
            ("was", Json),
            ("became", Json),
            ("at", Time),
            ("undone_at", Time),
            ("undone_kind", Text),
            ("undone_id", Actor("undone_kind")),
            ("undone_name", Text),
        ],
        &["kept"],
    )
    .of_account(Way::column("", BY_ID)),
    Table::exported(
        "contact_episode",
        &[("account", Type::Bytes), ("last_contact_at", Type::Int)],
        &[("account", Id("acc_")), ("last_contact_at", Time), ("announced_at", Time)],
        &[],
    )
    .of_account(Way::column("", &[("t.last_contact_at", Type::Int)])),
    Table::exported(
        "conversation",
        ID,
        &[
            ("id", Id("cnv_")),
            ("account", Id("acc_")),
            ("subject", Text),
            ("channel", Text),
            ("message_count", Number),
            ("last_message_at", Time),
            ("created_at", Time),
        ],
        &["thread"],
    )
    .of_account(Way::column(
        "conversation_by_account",
        &[("t.last_message_at", Type::Int), ("t.id", Type::Bytes)],
    )),
    Table::wide(
        "message",
        ID,
        &[
            ("id", Id("msg_")),
            ("conversation", Id("cnv_")),
            ("account", Id("acc_")),
            ("direction", Text),
            ("channel", Text),
            ("subject", Text),
            ("body", Text),
            ("body_truncated", Flag),
            ("author_kind", Text),
            ("author_id", Actor("author_kind")),
            ("author_name", Text),
            ("sender_address", Text),
            ("sender_name", Text),
            ("sender_check", Text),
            ("sender_relay", Text),
            ("attachments", Json),
            ("automatic", Flag),
            ("occurred_at", Time),
            ("created_at", Time),
        ],
        &["body_bytes"],
    )
    .of_account(Way::column("message_by_account", &[("t.occurred_at", Type::Int), ("t.id", Type::Bytes)])),
    Table::exported(
        "activity",
        &[("account", Type::Bytes), ("occurred_at", Type::Int), ("seq", Type::Int)],
        &[
            ("account", Id("acc_")),
            ("occurred_at", Time),
            ("received_at", Time),
            ("kind", Text),
            ("feature", Text),
            ("metadata", Json),
        ],
        &["seq"],
    )
    .of_account(Way::column("activity_by_account", &[("t.occurred_at", Type::Int), ("t.seq", Type::Int)])),
    Table::exported(
        "activity_count",
        &[("account", Type::Bytes), ("day", Type::Int), ("feature", Type::Text)],
        &[
            ("account", Id("acc_")),
            ("day", Day),
            ("feature", Text),
            ("count", Number),
            ("last_used_at", Time),
        ],
        &[],
    )
    .of_account(Way::column("", &[("t.day", Type::Int), ("t.feature", Type::Text)])),
    Table::exported(
        "ingest_reject",
        ID,
        &[
            ("id", Id("rej_")),
            ("at", Time),
            ("place", Number),
            ("account", Text),
            ("kind", Text),
            ("code", Text),
            ("field", Text),
            ("detail", Text),
        ],
        &[],
    )
    .of_account(Way::Directly {
        // What the sender called it.
        condition: "(t.account = $2 OR t.account = $3)",
        key: Key::Names,
        index: "",
        order: BY_ID,
    }),
    Table::exported(
        "webhook",
        ID,
        &[
            ("id", Id("whk_")),
            ("url", Text),
            ("description", Text),
            ("events", Text),
            ("filters", Text),
            ("headers", Text),
            ("disabled_by_hand", Flag),
            ("auto_disabled_at", Time),
            ("failure_streak", Number),
            ("proven", Flag),
            ("last_test_at", Time),
            ("last_test_succeeded", Flag),
            ("url_changed_at", Time),
            ("created_at", Time),
            ("updated_at", Time),
            ("deleted_at", Time),
        ],
        &["dropped_before", "header_secrets", "secret", "secret_shown"],
    ),
    Table::wide(
        "event",
        ID,
        &[
            ("id", Id("evt_")),
            ("kind", Text),
            ("account", Id("acc_")),
            ("payload", Json),
            ("created_at", Time),
        ],
        &["change"],
    )
    .of_account(Way::column("event_by_account", BY_ID)),
    Table::exported(
        "delivery",
        ID,
        &[
            ("id", Id("dlv_")),
            ("webhook", Id("whk_")),
            ("event", Id("evt_")),
            ("kind", Text),
            ("account", Id("acc_")),
            ("state", Word(&["open", "succeeded", "failed"])),
            ("next_at", Time),
            ("attempts", Number),
            ("response_code", Number),
            ("error", Text),
            ("created_at", Time),
            ("finished_at", Time),
        ],
        &["owner", "scheduled"],
    )
    .of_account(Way::ThroughEvents {
        join: "CROSS JOIN delivery t /*INDEXED BY delivery_by_event*/",
        condition: "t.event = e.id",
        order: &[("e.id", Type::Bytes), ("t.id", Type::Bytes)],
    }),
    Table::exported(
        "attempt",
        &[("delivery", Type::Bytes), ("number", Type::Int)],
        &[
            ("delivery", Id("dlv_")),
            ("number", Number),
            ("started_at", Time),
            ("succeeded", Flag),
            ("manual", Flag),
            ("response_code", Number),
            ("failure", Text),
            ("error", Text),
            ("total_us", Number),
            ("address", Text),
        ],
        &["connect_us", "dns_us", "excerpt", "excerpt_cut", "first_byte_us", "tls_us"],
    )
    .of_account(Way::ThroughEvents {
        join: "CROSS JOIN delivery d /*INDEXED BY delivery_by_event*/ CROSS JOIN attempt t",
        condition: "d.company = $1 AND d.event = e.id AND t.delivery = d.id",
        order: &[("e.id", Type::Bytes), ("d.id", Type::Bytes), ("t.number", Type::Int)],
    }),
    Table::exported(
        "redelivery",
        ID,
        &[
            ("id", Id("rdl_")),
            ("filter", Json),
            ("total", Number),
            ("queued", Number),
            ("skipped", Number),
            ("created_at", Time),
            ("cancelled_at", Time),
            ("finished_at", Time),
        ],
        &["walked_to"],
    ),
    Table::exported(
        "import",
        ID,
        &[
            ("id", Id("imp_")),
            ("filename", Text),
            ("state", Text),
            ("mode", Text),
            ("rows_done", Number),
            ("rows_total", Number),
            ("created", Number),
            ("updated", Number),
            ("unchanged", Number),
            ("skipped", Number),
            ("failed", Number),
            ("actor_kind", Text),
            ("actor_id", Actor("actor_kind")),
            ("actor_name", Text),
            ("created_at", Time),
            ("started_at", Time),
            ("finished_at", Time),
            ("undone_at", Time),
            ("deleted_at", Time),
        ],
        &[
            "accounts",
            "active",
            "at_line",
            "at_offset",
            "bytes",
            "charset",
            "codes_unmatched",
            "columns",
            "data_line",
            "data_offset",
            "delimiter",
            "findings",
            "formats",
            "lease_until",
            "mapping",
            "preview",
            "remembered",
            "runner",
            "undo_after",
            "undo_done",
            "undo_kept",
            "undo_removed",
            "undo_restored",
            "words",
        ],
    ),
    Table::exported(
        "import_error",
        &[("import", Type::Bytes), ("line", Type::Int)],
        &[("import", Id("imp_")), ("line", Number), ("cells", Json), ("reason", Text)],
        &[],
    ),
    Table::exported(
        "import_change",
        &[("import", Type::Bytes), ("account", Type::Bytes)],
        &[("import", Id("imp_")), ("account", Id("acc_")), ("created", Flag), ("differences", Json)],
        &["mark"],
    )
    .of_account(Way::column("import_change_by_account", &[("t.import", Type::Bytes)])),
    Table::exported(
        "import_account",
        &[("import", Type::Bytes), ("created", Type::Int), ("account", Type::Bytes)],
        &[("import", Id("imp_")), ("account", Id("acc_")), ("created", Flag)],
        &[],
    )
    .of_account(Way::column("import_account_by_account", &[("t.import", Type::Bytes)])),
    Table::exported(
        "bulk_change",
        &[("bulk", Type::Bytes), ("account", Type::Bytes)],
        &[("bulk", Id("blk_")), ("account", Id("acc_")), ("differences", Json)],
        &[],
    )
    .of_account(Way::column("bulk_change_by_account", &[("t.bulk", Type::Bytes)])),
    Table::exported(
        "digest",
        &[("year", Type::Int), ("week", Type::Int)],
        &[("year", Number), ("week", Number), ("overdue", Number), ("created_at", Time)],
        &["content"],
    ),
    Table::exported(
        "mail",
        ID,
        &[
            ("id", Id("mai_")),
            ("kind", Text),
            ("person", Id("per_")),
            ("recipient", Text),
            ("state", Word(&["waiting", "sent", "failed"])),
            ("attempts", Number),
            ("error", Text),
            ("created_at", Time),
            ("finished_at", Time),
        ],
        &["content", "next_at", "not_after"],
    ),
    Table::exported(
        "audit",
        ID,
        &[
            ("id", Id("aud_")),
            ("at", Time),
            ("actor_kind", Text),
            ("actor_id", Actor("actor_kind")),
            ("actor_name", Text),
            ("action", Text),
            ("target", Text),
            ("detail", Json),
            ("address", Text),
            ("request_id", Text),
        ],
        &[],
    )
    .of_account(Way::Directly {
        condition: "t.target = $2",
        key: Key::Text,
        index: "audit_by_target",
        order: BY_ID,
    }),
    Table::internal("account_change", &[("change", Type::Int), ("account", Type::Bytes)]),
    Table::internal("account_word", &[("word", Type::Text), ("account", Type::Bytes)]),
    Table::internal(
        "account_field",
        &[("field", Type::Text), ("value", Type::Text), ("account", Type::Bytes)],
    ),
    Table::internal("cadence", ACCOUNT),
    Table::internal("mail_reference", &[("mark", Type::Bytes)]),
    Table::internal("event_mark", &[("mark", Type::Bytes)]),
    Table::internal("activity_day", &[("day", Type::Int), ("shard", Type::Int)]),
    Table::internal(
        "channel_total",
        &[("channel", Type::Bytes), ("code_folded", Type::Text), ("currency", Type::Text)],
    ),
    Table::internal("stage_total", &[("status", Type::Text), ("currency", Type::Text)]),
    Table::internal("manual_attempt", ID),
    Table::internal("fan_out", &[("event", Type::Bytes), ("part", Type::Int)]),
    Table::wide_internal("import_chunk", &[("import", Type::Bytes), ("number", Type::Int)]),
    Table::internal("import_mapping", &[("columns_mark", Type::Bytes)]),
    Table::internal("import_word", &[("word", Type::Text)]),
    Table::wide_internal("mail_content", ID),
    Table::internal("session", &[("hash", Type::Bytes)]),
    Table::internal("removed_member", &[("mark", Type::Bytes)]),
    Table::internal("submission", &[("form", Type::Bytes)]),
    Table::wide_internal("kept_response", ID),
];
