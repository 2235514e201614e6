//! An older database is upgraded: `rapport migrate` says how far it is and leaves a backup of an embedded one, and people
//! log in as before.

use std::os::unix::fs::PermissionsExt as _;

use rapport_store::Database;
use rapport_testkit::{old_database, raw};

use crate::program::Place;

const ACCOUNTS: usize = 100;

#[test]
fn an_upgrade_says_how_far_it_is() {
    Place::each(|place| {
        old_database::create(&place.database(), ACCOUNTS);
        let ended = place.run(&["migrate"]);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        for line in [
            "schema version 4: filled, ",
            " rows of account",
            "schema version 11: built the index account_by_status on account (",
            "schema version 18: done (",
        ] {
            assert!(ended.stderr.contains(line), "{line:?} is missing in:\n{}", ended.stderr);
        }
        assert!(ended.stdout.contains("is at schema version"), "{}", ended.stdout);

        let again = place.run(&["migrate"]);
        assert_eq!((again.code, again.stderr.as_str()), (Some(0), ""), "nothing to do");
        assert_eq!(again.stdout, ended.stdout);
    });
}

#[test]
fn the_backup_is_complete_and_private() {
    let place = Place::sqlite();
    old_database::create(&place.database(), ACCOUNTS);
    assert_eq!(place.run(&["migrate"]).code, Some(0));
    let files = std::fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().path());
    let names: Vec<_> = files.filter(|path| path.to_string_lossy().contains("rapport.db.")).collect();
    let [backup] = names.as_slice() else { panic!("{names:?}") };
    assert!(backup.to_string_lossy().ends_with("-from-v1"), "{backup:?}");
    assert_eq!(std::fs::metadata(backup).unwrap().permissions().mode() & 0o777, 0o600);
    let backup = Database::Sqlite(backup.clone());
    assert_eq!(raw::ask(&backup, "SELECT count(*) FROM account"), ACCOUNTS.to_string());
    assert_eq!(raw::ask(&backup, "PRAGMA integrity_check"), "ok");
}

/// What the first release stored for this password.
const PASSWORD: &str = "the word of the old days";
const HASH: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$ye3V7YaV5Xo1M0TPXdBKxA$/E+yu5o4qBDD6Kw4dAdc+ASYy1zdYgFZJD/Jr5FE4HA";

/// Ada of Acme, who also works for Globex, and Bo, who works for Globex only.
fn hire_in_two_companies(database: &Database) {
    let id = |number: u8| match database {
        Database::Sqlite(_) => format!("x'{number:032x}'"),
        Database::Postgres(_) => format!("'\\x{number:032x}'::bytea"),
    };
    let (ada, bo) = (id(1), id(2));
    raw::run(
        database,
        &format!(
            "INSERT INTO company (id, slug, name, cadence_days, tracked_stages, digest_enabled, digest_weekday, \
                                  time_zone, default_currency, created_at) \
             VALUES (2, 'globex', 'Globex', 30, 'customer', 0, 'monday', 'UTC', 'EUR', 1); \
             INSERT INTO person (id, email, name, password_hash, created_at) \
             VALUES ({bo}, 'bo@globex.test', 'Bo', 'x', 1); \
             UPDATE person SET password_hash = '{HASH}'; \
             INSERT INTO member (company, person, role, created_at) VALUES (2, {ada}, 'member', 1), (2, {bo}, 'owner', 1)"
        ),
    );
}

#[test]
fn people_of_two_companies_log_in_and_switch_after_an_upgrade() {
    Place::each(|place| {
        old_database::create(&place.database(), ACCOUNTS);
        hire_in_two_companies(&place.database());
        let service = place.serve();
        let send = |path: &str, cookie: &str, form: &[(&str, &str)]| {
            let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
            let method = if form.is_empty() { "GET" } else { "POST" };
            let headers = [
                ("Content-Type", "application/x-www-form-urlencoded"),
                ("Sec-Fetch-Site", "same-origin"),
                ("Cookie", cookie),
            ];
            service.exchange(method, path, &headers, &body).expect("an answer")
        };
        let session = |head: &str| {
            let mut lines = head.lines();
            let set = lines.find_map(|line| line.strip_prefix("set-cookie: rapport=")).map(str::to_owned);
            let set = set.unwrap_or_else(|| panic!("no session in:\n{head}"));
            format!("rapport={}", set.split(';').next().unwrap())
        };
        let log_in =
            |email: &str| session(&send("/login", "", &[("email", email), ("password", PASSWORD)]).0);

        let bo = log_in("bo@globex.test");
        let (head, page) = send("/settings/members", &bo, &[]);
        assert!(head.starts_with("HTTP/1.1 200") && page.contains("ada@acme.test"), "{head}{page}");
        let ada = log_in("ada@acme.test");
        let (_, page) = send("/companies", &ada, &[]);
        assert!(page.contains("Acme") && page.contains("Globex"), "{page}");
        for project in ["globex", "acme"] {
            let form = [("project", project), ("form", "frm_06drtrktg1r1qcyaph2sa2bbjc")];
            let there = session(&send("/companies", &log_in("ada@acme.test"), &form).0);
            let (head, page) = send("/accounts", &there, &[]);
            assert!(head.starts_with("HTTP/1.1 200"), "{head}");
            assert_eq!(page.contains("/accounts/acc_"), project == "acme", "{page}");
        }
        let refused = send("/login", "", &[("email", "ada@acme.test"), ("password", "another one")]).0;
        assert!(refused.starts_with("HTTP/1.1 422"), "{refused}");
    });
}
