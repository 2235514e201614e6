//! Files as people have them: in a German and an English dialect, with several addresses in a cell, words for stages
//! and dates as a spreadsheet writes them. Nothing in them is edited.

use rapport_app::account::DeleteAccount;
use rapport_app::account_address::AddAddress;
use rapport_app::import::{Purpose, RemoveImport, retry};
use rapport_app::retention::PruneImports;
use rapport_app::{Access, Error};
use rapport_domain::audience::{ImportEffect, ImportFilter};
use rapport_domain::id::{FormId, ImportId};
use rapport_domain::import::{Import, State, UNDO_DAYS};
use rapport_domain::member::Email;
use rapport_domain::pipeline::Status;
use rapport_store::account_list::{AccountFilter, By, ListAccounts, Sort, count_capped};
use rapport_store::{Query as _, account_address};
use rapport_testkit::{TestApp, TestCompany, block_on};
use serde_json::{Value, json};

use crate::imports::{finish, imported, start, undone, upload};

const ROWS: usize = 500;

/// One of these, in turns.
fn turn<'a>(number: usize, values: &[&'a str]) -> &'a str {
    values[number % values.len()]
}

/// A file of a German spreadsheet: Windows-1252, semicolons, decimal commas, days first.
fn german() -> Vec<u8> {
    let mut text =
        "Kundennr.;Firma;Status;Umsatz;E-Mail;Letzter Kontakt;Kontakt alle;Wiedervorlage;Gutschein;Ort\r\n"
            .to_owned();
    for n in 0..ROWS {
        let status =
            ["Kunde", "Interessent", "Bestandskunde", "Testphase", "Angebot gesendet", "gekündigt", ""];
        let value = ["12.500,00", "1.234,56 €", "€ 99,90", "950,-", "", "k.A.", "1.000.000", "7"];
        let email = match n % 4 {
            0 => format!("info{n}@firma.de"),
            1 => format!("a{n}@firma.de, B{n}@Firma.de"),
            2 => format!("Anna Müller <anna{n}@firma.de>"),
            _ => String::new(),
        };
        let contact = ["31.12.2025", "3.4.2025", "01.02.25 14:30", "3. März 2025", "", "nie"];
        let cadence = ["14 Tage", "alle 6 Wochen", "monatlich", "30", "Standard", ""];
        let row = [
            format!("K-{n:04}"),
            format!("Müller & Söhne {n} GmbH"),
            turn(n, &status).to_owned(),
            turn(n, &value).to_owned(),
            email,
            turn(n, &contact).to_owned(),
            turn(n, &cadence).to_owned(),
            turn(n, &["31.12.2027", "", "01.06.27"]).to_owned(),
            turn(n, &["HERBST", "herbst", "UNBEKANNT", "unbekannt", ""]).to_owned(),
            " München ".to_owned(),
        ];
        text.push_str(&row.join(";"));
        text.push_str("\r\n");
        if n % 100 == 50 {
            text.push_str(";;;;;;;;;\r\n");
        }
    }
    let byte = |letter: char| match letter {
        '€' => 0x80,
        other => u8::try_from(u32::from(other)).expect("in Windows-1252"),
    };
    text.chars().map(byte).collect()
}

/// A file of a British CRM: UTF-8 with a mark, commas, decimal points, days first, and words of its own.
fn english() -> String {
    let mut text =
        "\u{feff}Account ID,Company name,Deal stage,Contract value,Email addresses,Last contacted,\
                    Contact every,Snooze until,Coupon,Notes\n"
            .to_owned();
    for n in 0..ROWS {
        let status = ["Won", "trial", "Closed - Lost", "Hot", "Negotiation", "Opted out", "Lead"];
        let value = ["\"€1,200\"", "\"$2,500.00\"", "\"1,234.50\"", "n/a", "£99", ""];
        let contact = ["03/04/2025", "31/12/2025", "4 May 2025", "2025-12-01T08:30:00Z", "-"];
        let row = [
            format!("crm-{n}"),
            format!("\"Acme {n}, Inc.\""),
            turn(n, &status).to_owned(),
            turn(n, &value).to_owned(),
            if n.is_multiple_of(2) { format!("info{n}@acme.test;sales{n}@acme.test") } else { String::new() },
            turn(n, &contact).to_owned(),
            turn(n, &["weekly", "every 2 weeks", "45", "default", ""]).to_owned(),
            turn(n, &["31/12/2027", ""]).to_owned(),
            String::new(),
            "\"two\nlines\"".to_owned(),
        ];
        text.push_str(&row.join(","));
        text.push('\n');
    }
    text
}

fn addresses(company: &TestCompany, imported_id: &str) -> Vec<String> {
    let id = company.account(imported_id).id;
    let found = company.read(move |snapshot| account_address::of_account(snapshot, id, 10));
    found.into_iter().map(|(email, _)| email.as_str().to_owned()).collect()
}

fn names(company: &TestCompany, import: ImportId, effect: Option<ImportEffect>, sort: Sort) -> Vec<String> {
    let now = company.app().now();
    let filter =
        AccountFilter { import: Some(ImportFilter { id: import, effect }), ..AccountFilter::default() };
    let list = ListAccounts { filter, sort, cursor: None, limit: 1_000, now };
    company.read(move |snapshot| list.run(snapshot)).items.into_iter().map(|account| account.name).collect()
}

fn previewed(company: &TestCompany, import: &Import) -> Value {
    start(company, import.id, Purpose::Preview, json!({})).expect("started");
    finish(company, import.id).preview.expect("a preview")
}

#[test]
fn a_german_file_is_imported_as_it_is_and_undone() {
    TestApp::on_both(|app| {
        app.set(json!({"time_zone": "Europe/Berlin", "default_currency": "EUR"}));
        app.channel("Messe", &["Herbst"]);
        let uploaded = upload(app, german());
        assert_eq!((uploaded.charset.name(), uploaded.delimiter.text().as_str()), ("windows-1252", ";"));
        let preview = previewed(app, &uploaded);
        assert_eq!(preview["failures"], json!([]));
        assert_eq!(preview["unmatched_promo_codes"], json!(["unbekannt"]));
        assert_eq!(preview["counts"]["promo_codes_unmatched"], json!(1), "a code, however many rows name it");
        start(app, uploaded.id, Purpose::Run, json!({})).unwrap();
        let done = finish(app, uploaded.id);
        assert_eq!((done.state, done.counts.created, done.counts.failed), (State::Finished, 500, 0));
        assert_eq!((done.counts.skipped, done.counts.promo_codes_unmatched), (5, 1));

        let first = app.account("K-0000");
        assert_eq!((first.name.as_str(), first.status), ("Müller & Söhne 0 GmbH", Status::Customer));
        let value = first.value.unwrap();
        assert_eq!((value.amount_text().as_str(), value.currency.code()), ("12500.00", "EUR"));
        assert_eq!(
            first.last_contact_at.unwrap().to_string(),
            "2025-12-30T23:00:00Z",
            "the day begins in Berlin"
        );
        assert_eq!(
            (first.cadence_override, first.snoozed_until.unwrap().to_string().as_str()),
            (Some(14), "2027-12-31")
        );
        assert_eq!(first.custom_fields.as_json(), r#"{"ort":"München"}"#);
        assert_eq!(first.promo_code.unwrap().as_str(), "Herbst");
        assert_eq!(addresses(app, "K-0001"), ["a1@firma.de", "b1@firma.de"]);
        assert_eq!(addresses(app, "K-0002"), ["anna2@firma.de"]);
        let third = app.account("K-0002");
        assert_eq!(third.last_contact_at.unwrap().to_string(), "2025-02-01T13:30:00Z");
        assert_eq!((third.cadence_override, third.status), (Some(30), Status::Customer));
        assert_eq!(app.account("K-0003").last_contact_at.unwrap().to_string(), "2025-03-02T23:00:00Z");
        assert_eq!(app.account("K-0003").status, Status::InTrial);
        assert_eq!(app.account("K-0004").cadence_override, None, "the company's cadence");
        assert_eq!(app.account("K-0005").last_contact_at, None);
        assert_eq!(app.rows("contact"), 0, "no contact is made up");
        assert_eq!(app.rows("account_address"), 500);

        let undo = undone(app, done.id).undo;
        assert_eq!((undo.removed, undo.kept), (500, 0));
        assert_eq!(
            ["account", "account_address", "cadence", "import_account"].map(|table| app.rows(table)),
            [0; 4]
        );
    });
}

#[test]
fn an_english_file_asks_only_for_the_words_that_nobody_knows() {
    TestApp::on_both(|app| {
        let uploaded = upload(app, english());
        let preview = previewed(app, &uploaded);
        let unknown = &preview["failures"][0];
        assert_eq!((&unknown["column"], &unknown["code"]), (&json!("Deal stage"), &json!("unknown_status")));
        assert_eq!((&unknown["rows"], &unknown["line"]), (&json!(71), &json!(8)), "lines count, not rows");
        assert_eq!(unknown["values"], json!([{"value": "Hot", "rows": 71, "line": 8}]));
        assert_eq!(preview["failures"].as_array().unwrap().len(), 1);

        start(app, uploaded.id, Purpose::Run, json!({"status_words": {"hot": "in_negotiation"}})).unwrap();
        let done = finish(app, uploaded.id);
        assert_eq!((done.counts.created, done.counts.failed), (500, 0));
        let first = app.account("crm-0");
        assert_eq!((first.name.as_str(), first.status), ("Acme 0, Inc.", Status::Customer));
        assert_eq!(
            first.last_contact_at.unwrap().to_string(),
            "2025-04-03T00:00:00Z",
            "the column says day first"
        );
        let value =
            |id: &str| app.account(id).value.map(|money| (money.amount_text(), money.currency.code()));
        assert_eq!(value("crm-0"), Some(("1200.00".to_owned(), "EUR")));
        assert_eq!(value("crm-1"), Some(("2500.00".to_owned(), "USD")));
        assert_eq!((value("crm-2").unwrap().0, value("crm-3")), ("1234.50".to_owned(), None));
        assert_eq!(app.account("crm-3").status, Status::InNegotiation);
        assert_eq!(app.account("crm-5").status, Status::DoNotContact);
        assert_eq!(app.account("crm-1").cadence_override, Some(14));
        assert_eq!(addresses(app, "crm-2"), ["info2@acme.test", "sales2@acme.test"]);

        let again = upload(app, "id,status\ncrm-0,HOT\n");
        assert_eq!(previewed(app, &again)["counts"]["updated"], json!(1), "the choice is remembered");
        let other = app.company("globex");
        let elsewhere = upload(&other, "id,status\ncrm-0,HOT\n");
        assert_eq!(
            previewed(&other, &elsewhere)["counts"]["failed"],
            json!(1),
            "by the company that made it"
        );
    });
}

#[test]
fn a_result_lists_exactly_the_accounts_it_created_or_changed() {
    TestApp::on_both(|app| {
        for (id, name) in [("old-1", "Old 1"), ("old-2", "Old 2"), ("same", "Same"), ("other", "Other")] {
            app.upsert(json!({"imported_id": id, "name": name}));
        }
        let file = "id,name,email\nbad,Bad,nobody\nold-1,Changed,\nnew-1,New 1,\nsame,Same,\nold-2,Old 2,old2@acme.test\n\
                    new-1,New one,\nold-1,Changed again,\n";
        let done = imported(app, file, json!({}));
        assert_eq!((done.counts.created, done.counts.updated, done.counts.unchanged), (1, 4, 1));
        assert_eq!((done.changed_accounts(), done.findings.failures.len()), (2, 1));
        let (created, changed) = (Some(ImportEffect::Created), Some(ImportEffect::Changed));
        for sort in [Sort::NEWEST, By::Name.ascending(), By::LastSeen.descending()] {
            let mut found = names(app, done.id, changed, sort);
            found.sort_unstable();
            assert_eq!(found, ["Changed again", "Old 2"], "{sort:?}");
            assert_eq!(names(app, done.id, created, sort), ["New one"], "{sort:?}");
            assert_eq!(names(app, done.id, None, sort).len(), 3, "{sort:?}");
        }
        let filter = AccountFilter {
            import: Some(ImportFilter { id: done.id, effect: None }),
            ..AccountFilter::default()
        };
        let now = app.app().now();
        assert_eq!(app.read(move |snapshot| count_capped(snapshot, &filter, now, 100)).count, 3);

        app.clock().advance_days(UNDO_DAYS + 1);
        let prune = || while app.write_as(&Access::System(app.id()), PruneImports).unwrap() {};
        prune();
        assert_eq!(app.rows("import_change"), 0);
        assert_eq!(
            app.number("SELECT count(*) FROM import WHERE findings <> ''"),
            0,
            "values go with the rows"
        );
        assert_eq!(names(app, done.id, created, Sort::NEWEST), ["New one"], "as long as the import is kept");
        app.write(DeleteAccount(app.account("new-1").id)).unwrap();
        assert_eq!((names(app, done.id, created, Sort::NEWEST).len(), app.rows("import_account")), (0, 2));
        app.write(RemoveImport(done.id)).unwrap();
        prune();
        assert_eq!((app.rows("import_account"), app.rows("import")), (0, 0));
        assert_eq!(names(app, done.id, None, Sort::NEWEST), [""; 0]);
    });
}

#[test]
fn an_undo_takes_back_addresses_contact_cadence_and_snooze() {
    TestApp::on_both(|app| {
        let email = |text: &str| Email::parse(text).unwrap();
        app.upsert(json!({"imported_id": "crm-1", "name": "Acme", "status": "customer"}));
        let account = app.account("crm-1").id;
        app.write(AddAddress { account, address: email("own@acme.test") }).unwrap();
        let before = app.account("crm-1");
        let file = "id,email,last contact,cadence,snooze\n\
                    crm-1,own@acme.test new@acme.test,2025-11-30,weekly,2027-01-31\n\
                    crm-1,third@acme.test,,,\n";
        let done = imported(app, file, json!({}));
        assert_eq!((done.counts.updated, done.counts.failed), (2, 0));
        let changed = app.account("crm-1");
        assert_eq!(changed.last_contact_at.unwrap().to_string(), "2025-11-30T00:00:00Z");
        assert_eq!((changed.cadence_override, changed.snoozed_until.is_some()), (Some(7), true));
        assert_eq!(addresses(app, "crm-1"), ["new@acme.test", "own@acme.test", "third@acme.test"]);
        let undo = undone(app, done.id).undo;
        assert_eq!((undo.restored, undo.kept), (1, 0));
        let after = app.account("crm-1");
        assert_eq!((after.last_contact_at, after.cadence_override, after.snoozed_until), (None, None, None));
        assert_eq!(after.tracked_since, before.tracked_since);
        assert_eq!(addresses(app, "crm-1"), ["own@acme.test"]);
    });
}

#[test]
fn an_address_belongs_to_one_account() {
    TestApp::on_both(|app| {
        app.upsert(json!({"imported_id": "crm-1", "name": "Acme"}));
        let account = app.account("crm-1").id;
        app.write(AddAddress { account, address: Email::parse("taken@acme.test").unwrap() }).unwrap();
        let filler = (0..1_100).map(|number| format!("f-{number},\n")).collect::<Vec<_>>().concat();
        let file = format!(
            "id,email\ncrm-2,TAKEN@acme.test\ncrm-3,a@acme.test\ncrm-4,not an address\n{filler}\
             crm-5,a@acme.test\ncrm-3,a@acme.test b@acme.test\n"
        );
        let uploaded = upload(app, file);
        let preview = previewed(app, &uploaded);
        let groups = |found: &Value| -> Vec<(Value, Value, Value)> {
            let groups = found.as_array().unwrap().iter();
            groups
                .map(|group| (group["code"].clone(), group["rows"].clone(), group["column"].clone()))
                .collect()
        };
        let expected = [
            (json!("address_taken"), json!(2), json!("email")),
            (json!("malformed"), json!(1), json!("email")),
        ];
        assert_eq!(
            groups(&preview["failures"]),
            expected,
            "also for accounts that it would create further up"
        );
        start(app, uploaded.id, Purpose::Run, json!({})).unwrap();
        let done = finish(app, uploaded.id);
        assert_eq!(groups(&json!(done.findings.by_rows())), expected);
        assert_eq!(json!(done.counts), preview["counts"]);
        assert_eq!(addresses(app, "crm-3"), ["a@acme.test", "b@acme.test"]);
        assert_eq!(app.find("crm-5"), None);
    });
}

#[test]
fn the_rows_that_failed_are_retried_with_other_choices() {
    TestApp::on_both(|app| {
        let file = "id,name,status,value\n1,A,won,1.50\n2,=B,Hot,2.50\n3,C,Hot,x\n";
        let done = imported(app, file, json!({"mode": "create"}));
        assert_eq!((done.counts.created, done.counts.failed), (1, 2));
        let form = FormId::from_bytes([7; 16]);
        let again = block_on(retry(app.app(), app.token(), done.id, form)).unwrap();
        assert_eq!(
            (again.state, again.column_names()),
            (State::Uploaded, vec!["id", "name", "status", "value"])
        );
        assert_eq!((again.mapping, again.formats, again.mode), (done.mapping, done.formats, done.mode));
        start(app, again.id, Purpose::Run, json!({"status_words": {"hot": "in_trial"}})).unwrap();
        let second = finish(app, again.id);
        assert_eq!((second.counts.created, second.counts.failed), (1, 1));
        assert_eq!(app.account("2").name, "=B");
        assert_eq!(second.findings.failures[0].values[0].value, "x");
        let twice = block_on(retry(app.app(), app.token(), done.id, form));
        assert!(matches!(twice, Err(Error::Conflict { .. })), "a form counts once");
    });
}
