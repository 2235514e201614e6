//! What every error code means and what to do about it, for the API documentation and docs/errors.md. A test compares
//! these tables with the lists of codes that are sent.

/// The code of a problem.
pub struct ProblemCode {
    pub code: &'static str,
    /// The statuses that it comes with.
    pub status: &'static str,
    pub meaning: &'static str,
    pub remedy: &'static str,
}

/// The code of a field, in a problem's `errors` or in the `rejected` events of a batch.
pub struct FieldCode {
    pub code: &'static str,
    pub meaning: &'static str,
    pub remedy: &'static str,
}

/// Where a code is described. Accepts the `type` of a problem too.
pub const PATH: &str = "/api/errors/{code}/";
/// What the `type` of every problem begins with. It is in the released API, so it stays.
pub const TYPE_PREFIX: &str = "urn:rapport:problem:";

/// The anchor of a code in the API documentation, if there is such a code.
pub fn anchor(code: &str) -> Option<String> {
    let code = code.strip_prefix(TYPE_PREFIX).unwrap_or(code);
    if PROBLEMS.iter().any(|known| known.code == code) {
        return Some(format!("error-{code}"));
    }
    FIELDS.iter().any(|known| known.code == code).then(|| format!("field-{code}"))
}

const fn problem(
    code: &'static str,
    status: &'static str,
    meaning: &'static str,
    remedy: &'static str,
) -> ProblemCode {
    ProblemCode { code, status, meaning, remedy }
}

const fn field(code: &'static str, meaning: &'static str, remedy: &'static str) -> FieldCode {
    FieldCode { code, meaning, remedy }
}

const RETRY: &str = "Send the request again after the number of seconds in `Retry-After`.";
const SEE_DETAIL: &str = "Send one of the values that `detail` lists.";

#[rustfmt::skip]
pub const PROBLEMS: &[ProblemCode] = &[
    problem("address_taken", "409", "Another account has this email address.", "Remove it there first, or use that account."),
    problem("all_rejected", "422", "Every event of the batch is invalid. Nothing was stored.", "Fix the events that `rejected` lists and send them again."),
    problem("already_a_member", "409", "This person is already a member of the company.", "Change their role with `PATCH members/{id}/` if that is what you want."),
    problem("already_invited", "409", "There is an open invitation for this address.", "Resend that invitation, or revoke it and invite again."),
    problem("already_sent", "409", "The same form was sent before and did its work.", "Nothing to do. It concerns pages only."),
    problem("already_undone", "409", "The correction was undone before.", "Nothing to do."),
    problem("bad_host", "400", "The request doesn't have exactly one valid `Host` header.", "Send one `Host` header with the service's host."),
    problem("bad_idempotency_key", "400", "The `Idempotency-Key` header is empty, too long or has characters that aren't allowed.", "Use a new UUID for each new request."),
    problem("bad_precondition", "400", "`If-Match` or `If-None-Match` isn't a list of versions.", "Send the `ETag` of a response as it is, in quotes, or `*`."),
    problem("batch_refused", "422", "The batch is strict, and events are invalid or match no account. Nothing was stored.", "Fix the events in `rejected`, import the accounts of those in `unmatched`, and send the batch again."),
    problem("batch_too_large", "413", "The batch has more events or accounts than allowed; `max_events` or `max_accounts` says how many are.", "Send several smaller batches."),
    problem("body_too_large", "413", "The body is larger than `max_bytes` after decompression.", "Send less at once."),
    problem("body_too_slow", "408", "The body took too long to arrive, or the address has too many slow bodies.", "Send it again over a faster connection."),
    problem("break_glass_owner", "409", "This owner is the way in without single sign-on.", "Name another break-glass owner first."),
    problem("broken_body", "400", "The body ended before it was complete.", "Send the request again."),
    problem("broken_gzip", "400", "The gzip data is damaged or incomplete.", "Compress the body again, or send it uncompressed."),
    problem("busy", "503", "The service has too much to do. Nothing was saved.", RETRY),
    problem("changed_since", "409", "The entry was changed or deleted after this correction, so it can't be undone.", "Edit the entry instead, or undo the later corrections first."),
    problem("channel_in_use", "409", "Accounts are attributed to this channel, so it can't be deleted.", "Archive its promo codes instead."),
    problem("code_taken", "409", "The company already has this promo code, possibly archived.", "Choose another code."),
    problem("deletion_begun", "409", "The deletion of the company has begun and can't be cancelled.", "Nothing to do."),
    problem("deletion_requested", "409", "The company is already waiting to be deleted.", "Cancel the deletion first if you want another date."),
    problem("domain_claimed", "409", "The domain is confirmed for another company.", "Ask the server's administrator to release it there."),
    problem("domain_not_confirmed", "409", "A domain isn't confirmed for this company.", "Ask the server's administrator to confirm it (`rapport company claim-domain`)."),
    problem("domain_taken", "409", "An account was already created for this domain.", "Use that account; the preview names it."),
    problem("duplicate_member", "400", "A member appears twice in the body.", "Send each member once."),
    problem("foreign_project", "403", "The token doesn't belong to the company in `project`.", "Use a token of that company, or correct `project`."),
    problem("https_required", "400", "This port accepts only https.", "Use https."),
    problem("idempotency_key_reused", "422", "The key was sent before with a different request. Nothing was done.", "Use a new key for a new request."),
    problem("imported_id_taken", "409", "Another account has this `imported_id`.", "Update that account, or send another `imported_id`."),
    problem("internal_error", "500", "Something unexpected failed.", "Report it with the response's `X-Request-Id`. The server's log has the details."),
    problem("invalid", "422", "Fields or parameters are invalid; `errors` lists all of them. Nothing was changed.", "Fix what `errors` names. Its codes are described below."),
    problem("last_owner", "409", "A company needs at least one owner.", "Make somebody else an owner first."),
    problem("login_not_confined", "409", "The person's login may open other companies.", "They, or the server's administrator, have to do it."),
    problem("mail_not_configured", "409", "The server has no mail server.", "Ask the server's administrator to set `--smtp-url`."),
    problem("member_inactive", "409", "The member is deactivated.", "Reactivate them first."),
    problem("method_not_allowed", "405", "The path doesn't support this method.", "Use one that the `Allow` header lists."),
    problem("name_taken", "409", "Something of this kind already has this name.", "Choose another name."),
    problem("no_second_factor", "409", "The person has no second factor.", "Nothing to do."),
    problem("not_a_mail", "400", "The body isn't a mail.", "Send the raw message as `message/rfc822`."),
    problem("not_an_object", "400", "The body is JSON, but not a single object.", "Send one JSON object."),
    problem("not_ended", "409", "The import hasn't ended, so it can't be undone.", "Wait until it has ended, or cancel it."),
    problem("not_found", "404", "There is no such path or object in this company.", "Check the path and the id."),
    problem("not_json", "400", "The body isn't JSON.", "Send valid JSON in UTF-8."),
    problem("not_ready", "503", "The service can't do its work at the moment. For health checks.", RETRY),
    problem("not_running", "409", "The import is no longer running.", "Nothing to do."),
    problem("not_uploaded", "409", "The import has already been started.", "Upload the file again for another import."),
    problem("outcome_unknown", "503", "The connection to the database was lost during the commit. The change may or may not be saved.", "Look whether it is, or repeat a request that is safe to repeat: an upsert, or events with an `event_id`."),
    problem("own_second_factor", "409", "People manage their own second factors on their profile page.", "Use the profile page."),
    problem("passkey_known", "409", "The passkey is already in use.", "Use another passkey."),
    problem("payload_erased", "409", "The payload of this delivery was erased.", "It can't be sent again."),
    problem("person_known", "409", "The address already has a login.", "Log in with it, or use another address."),
    problem("precondition_failed", "412", "The resource has changed since the version in `If-Match`. Nothing was changed.", "Read it again, or use `current_etag`, and decide whether your change still applies."),
    problem("project_taken", "409", "Another company has this short name.", "Choose another one."),
    problem("proof_required", "403", "The person has to prove again who they are.", "Confirm with the password or a passkey. It concerns pages only."),
    problem("rate_limited", "429", "Too many requests. Nothing of the request was done.", "Wait for the number of seconds in `Retry-After`; the headers `RateLimit` and `RateLimit-Policy` describe the limit."),
    problem("rate_taken", "409", "The currency already has an exchange rate that is valid from this day.", "Change that rate, or choose another day."),
    problem("request_in_progress", "409", "A request with this key is still being handled.", "Send the request again after the number of seconds in `Retry-After`."),
    problem("response_not_kept", "409", "The request was done, but its response was too large to be kept.", "Don't repeat it. Read what it did."),
    problem("role_required", "403", "The role of the caller isn't enough; `detail` says who is allowed.", "Use a token with a higher role."),
    problem("second_factor_required", "403, 409", "A second factor has to be shown, or has to stay.", "Show or set up a second factor. It concerns people only."),
    problem("sso_required", "403, 409", "The company lets this person in only with single sign-on.", "Log in with single sign-on."),
    problem("sso_session", "409", "A session of single sign-on can't do this, because the login may open other companies.", "Log in with a password."),
    problem("stopping", "503", "The service is shutting down. Nothing was saved.", RETRY),
    problem("test_required", "409", "The webhook was disabled automatically and no test has succeeded since.", "Send a test, and enable the webhook once it succeeds."),
    problem("timed_out", "503", "The request took too long. Its change may or may not have been made.", "Look whether it was, or repeat a request that is safe to repeat."),
    problem("too_deep", "400", "The JSON is nested too deeply.", "Send flatter JSON."),
    problem("too_many_addresses", "409", "The account has as many email addresses as it can have.", "Remove one first."),
    problem("too_many_connections", "429", "The address has too many open connections.", "Close some, and reuse connections."),
    problem("too_many_idempotency_keys", "429", "The company has used too many keys within 24 hours.", "Send the request again after the number of seconds in `Retry-After`, and use keys only for requests that you may repeat."),
    problem("too_many_imports", "409", "Too many imports are still open.", "Finish or remove some."),
    problem("too_many_mails", "429", "Too many mails were asked for in a short time.", RETRY),
    problem("too_many_passkeys", "409", "The person has as many passkeys as they can have.", "Remove one first."),
    problem("too_many_views", "409", "There are as many saved views as there can be.", "Delete one first."),
    problem("too_many_waiting", "429", "Too many requests of the company, or of all, wait for events on this node.", "Wait with fewer requests at once, or send them without `wait`."),
    problem("totp_known", "409", "The person already has an authenticator app.", "Remove it first."),
    problem("unauthenticated", "401", "No valid credential was sent.", "Send a valid one as the `WWW-Authenticate` header says."),
    problem("unavailable", "503", "The database is unavailable. Nothing was saved.", RETRY),
    problem("undo_expired", "409", "The import or correction is too old to be undone.", "Nothing to do."),
    problem("undoing", "409", "The import is being undone.", "Wait until that finishes."),
    problem("unsupported_encoding", "415", "The body has an encoding other than gzip.", "Send it uncompressed or with gzip."),
    problem("unsupported_media_type", "415", "The body has the wrong media type.", "Send the `Content-Type` that `detail` names."),
    problem("uploaded", "409", "The file was already uploaded.", "Go on with the import that exists."),
    problem("webhook_deleted", "409", "The webhook of this delivery was deleted.", "It can't be sent again."),
];

#[rustfmt::skip]
pub const FIELDS: &[FieldCode] = &[
    field("account_mismatch", "`imported_id` and `account_id` name different accounts.", "Send one of them, or make them agree."),
    field("already_converted", "The file was converted to UTF-8 when it was uploaded.", "Upload it again with the right `encoding`."),
    field("ambiguous", "The values of a column can be read in two ways.", "Choose one of its formats in `formats`."),
    field("bad_character", "It has a character that isn't allowed.", "Remove the character."),
    field("bad_characters", "It has characters that aren't allowed.", "Use only the characters that `detail` names."),
    field("bad_host", "It isn't a valid host name.", "Send a host such as `acme.com`."),
    field("bad_port", "The port isn't valid.", "Use a port from 1 to 65535."),
    field("bad_redirect", "The home page redirects to an address that isn't allowed.", "Send the domain that it should lead to."),
    field("bad_url", "It isn't a valid URL.", "Send a complete URL."),
    field("cursor_expired", "What follows the cursor may be gone already.", "Start again without a cursor."),
    field("default_currency", "It is the company's default currency, which needs no exchange rate.", "Send another currency, or change the default currency first."),
    field("empty", "It is empty.", "Send a value, or leave the member out if it is optional."),
    field("filter_required", "The request has no filter.", "Send at least one filter."),
    field("forbidden_address", "The address isn't public.", "Use a public one, or ask the server's administrator to allow it (`--allow-destination`)."),
    field("fragment", "The URL has a fragment (`#…`).", "Leave the fragment out."),
    field("in_the_future", "It is too far in the future.", "Send an earlier time."),
    field("in_the_past", "It is in the past.", "Send a later time."),
    field("incomplete", "The mapping lacks a column that the mode needs.", "Map the column that `detail` names."),
    field("invalid_cursor", "It isn't a cursor of this list.", "Send `next_cursor` of the same list, with the same filters."),
    field("invalid_token", "The token is mistyped, unknown, used, revoked or expired.", "Ask for a new link."),
    field("invisible", "It has no visible character.", "Send a name that people can read, or none."),
    field("malformed", "It doesn't have the format that is expected.", "Send the format that `detail` describes."),
    field("missing_host", "The URL has no host.", "Send a complete URL."),
    field("negative", "The amount is negative.", "Send zero or more."),
    field("no_address", "The host has no address.", "Check the name and its DNS records."),
    field("no_header", "The file has no header row.", "Name the columns in the first line."),
    field("no_page", "The domain's home page answered with an error.", "Check the domain, or create the account without a lookup."),
    field("not_an_owner", "The person isn't an active owner with a password.", "Name one who is."),
    field("not_clearable", "The member can't be empty, so null doesn't clear it.", "Send a value, or leave the member out."),
    field("not_confirmed", "It doesn't repeat what has to be confirmed.", "Type exactly what `detail` names."),
    field("not_html", "The domain's home page isn't HTML.", "Create the account without a lookup."),
    field("not_https", "The URL doesn't begin with `https://`.", "Use https."),
    field("not_trackable", "The stage can't be tracked.", SEE_DETAIL),
    field("nul_character", "It has a NUL character.", "Remove it."),
    field("only_with_create", "It has an effect only with `\"create\": true`.", "Send `create`, or leave the member out."),
    field("only_with_sort", "The parameter works only with another sort.", "Send the `sort` that `detail` names, or leave the parameter out."),
    field("out_of_range", "It is too small or too large.", "Send a value in the range that `detail` names."),
    field("repeated", "It is there twice.", "Send it once."),
    field("required", "It is missing.", "Send it."),
    field("reserved_name", "The member has a reserved name.", "Use another name."),
    field("sample_account", "The account is part of the sample data.", "Remove the sample data, and create the account."),
    field("timed_out", "It took too long to check.", "Try again."),
    field("too_large", "It has too many bytes.", "Send less."),
    field("too_long", "It has too many characters.", "Send at most as many as `detail` says."),
    field("too_many", "There are too many of them.", "Send at most as many as `detail` says."),
    field("too_many_columns", "The file has too many columns.", "Remove some."),
    field("too_many_keys", "The account would have too many custom fields.", "Delete some: `null` deletes a key."),
    field("too_many_redirects", "The home page redirects too often.", "Send the domain that it leads to."),
    field("too_personal", "The password consists of the person's address, name or company.", "Choose another password."),
    field("too_short", "It has too few characters.", "Send at least as many as `detail` says."),
    field("too_weak", "The password is easy to guess; `detail` says why.", "Choose another password."),
    field("unchanged", "It is the value that is already there.", "Send another value."),
    field("unknown_action", "There is no such action.", SEE_DETAIL),
    field("unknown_audience", "It is neither `everyone` nor a member's id.", "Send one of these."),
    field("unknown_choice", "There is no such choice.", SEE_DETAIL),
    field("unknown_column", "The file has no such column.", "Send a name from the file's first line."),
    field("unknown_currency", "It isn't an ISO 4217 currency code.", "Send one such as `EUR`."),
    field("unknown_direction", "There is no such direction.", SEE_DETAIL),
    field("unknown_encoding", "There is no such encoding.", "Send one such as `utf-8`."),
    field("unknown_event", "There is no such event.", SEE_DETAIL),
    field("unknown_field", "There is no such field to map to.", SEE_DETAIL),
    field("unknown_format", "There is no such format.", SEE_DETAIL),
    field("unknown_goal", "There is no such goal.", SEE_DETAIL),
    field("unknown_kind", "There is no such kind.", SEE_DETAIL),
    field("unknown_login", "There is no such choice of a login.", SEE_DETAIL),
    field("unknown_member", "The request has a member that isn't known here.", "Leave it out; check its spelling."),
    field("unknown_mode", "There is no such mode.", SEE_DETAIL),
    field("unknown_parameter", "The request has a parameter that isn't known here.", "Leave it out; check its spelling."),
    field("unknown_person", "There is no such active member.", "Send the id of an active member."),
    field("unknown_policy", "There is no such policy.", SEE_DETAIL),
    field("unknown_promo_code", "The company has no such live promo code.", "Create the code first, or leave it out."),
    field("unknown_role", "There is no such role.", SEE_DETAIL),
    field("unknown_sort", "The list can't be sorted by this.", SEE_DETAIL),
    field("unknown_state", "There is no such state.", SEE_DETAIL),
    field("unknown_status", "There is no such status.", SEE_DETAIL),
    field("unknown_tab", "There is no such tab.", SEE_DETAIL),
    field("unknown_test", "There is no such test of a field.", SEE_DETAIL),
    field("unknown_time_zone", "There is no such time zone.", "Send an IANA name such as `Europe/Berlin`."),
    field("unknown_weekday", "There is no such weekday.", SEE_DETAIL),
    field("unmatched", "The event matches no account, and the batch is strict.", "Import the account first, or leave the event out."),
    field("unreachable", "The domain's home page couldn't be reached.", "Check the domain, or create the account without a lookup."),
    field("userinfo", "The URL has a user name or password.", "Leave them out."),
    field("wrong_password", "The password is incorrect.", "Send the right one."),
    field("wrong_type", "It has the wrong JSON type.", "Send the type that `detail` names."),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fmt::Write as _;
    use std::{env, fs};

    use rapport_domain::invalid::Fault;

    use super::*;
    use crate::edge::problem::Problem;

    const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/errors.md");
    /// Set it to write the document instead of comparing it.
    const WRITE: &str = "RAPPORT_WRITE_DOCS";
    const INTRODUCTION: &str = "\
# Error codes

Errors are `application/problem+json` (RFC 9457). Programs should look at `code`, and at the `code` of each entry in `errors`;
`title` and `detail` are for people and may change. New codes can be added ([versioning.md](versioning.md)), so treat a code
that you don't know by its status.

`type` is `urn:rapport:problem:` and the code. A URN can't be opened, so every problem has a `Link` header with
`rel=\"help\"` that can: `/api/errors/CODE/` leads to the code's description on the service itself, and accepts the `type` as
well. The page is `/api/docs/#group-errors`.

This page is generated from `crates/web/src/edge/codes.rs` (`RAPPORT_WRITE_DOCS=1 cargo test -p rapport-web codes`).
";

    fn document() -> String {
        let mut text = INTRODUCTION.to_owned();
        text.push_str("\n## Problems\n\n| `code` | Status | Meaning | What to do |\n|---|---|---|---|\n");
        for ProblemCode { code, status, meaning, remedy } in PROBLEMS {
            let _ = writeln!(text, "| `{code}` | {status} | {meaning} | {remedy} |");
        }
        text.push_str("\n## Fields\n\nThe `code` of an entry in `errors`, and of a rejected event.\n\n");
        text.push_str("| `code` | Meaning | What to do |\n|---|---|---|\n");
        for FieldCode { code, meaning, remedy } in FIELDS {
            let _ = writeln!(text, "| `{code}` | {meaning} | {remedy} |");
        }
        text
    }

    #[test]
    fn the_document_is_made_from_the_tables() {
        let made = document();
        if env::var_os(WRITE).is_some() {
            fs::write(DOCUMENT, &made).expect("written");
        }
        let found = fs::read_to_string(DOCUMENT).expect("docs/errors.md");
        assert!(found == made, "docs/errors.md is out of date: run this test with {WRITE}=1");
    }

    #[test]
    fn every_code_is_explained_once_in_order() {
        let explained: Vec<&str> = PROBLEMS.iter().map(|known| known.code).collect();
        assert_eq!(explained, Problem::codes().into_iter().collect::<Vec<_>>());
        let explained: Vec<&str> = FIELDS.iter().map(|known| known.code).collect();
        assert_eq!(explained, BTreeSet::from(Fault::CODES).into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn explanations_are_sentences() {
        let problems = PROBLEMS.iter().map(|known| (known.code, [known.meaning, known.remedy]));
        let fields = FIELDS.iter().map(|known| (known.code, [known.meaning, known.remedy]));
        for (code, texts) in problems.chain(fields) {
            assert!(texts.iter().all(|text| text.ends_with('.') && !text.contains('|')), "{code}: {texts:?}");
        }
        for ProblemCode { code, status, .. } in PROBLEMS {
            assert!(status.split(", ").all(|one| one.parse::<u16>().is_ok_and(|one| one >= 400)), "{code}");
        }
    }

    #[test]
    fn a_code_or_a_type_leads_to_its_anchor() {
        assert_eq!(anchor("invalid").as_deref(), Some("error-invalid"));
        assert_eq!(anchor("urn:rapport:problem:invalid").as_deref(), Some("error-invalid"));
        assert_eq!(anchor("too_long").as_deref(), Some("field-too_long"));
        assert_eq!(anchor("nonsense"), None);
    }
}
