//! `rapport import`, alone and next to a running service.

use std::fs;

use serde_json::Value;

use crate::program::Place;

const CREATE: [&str; 8] =
    ["company", "create", "acme", "--name", "Acme", "--owner", "you@acme.test", "--json"];
const FILE: &str =
    "Record ID;Company;Stage;Seats\ncrm-1;Acme;In trial;4\ncrm-2;Globex;nowhere;\ncrm-3;=Hooli;Customer;7\n";

/// A company, and a file to import.
fn prepared(place: &Place) -> (String, String) {
    let token = place.json(&CREATE)["api_token"].as_str().expect("a token").to_owned();
    let file = place.path().join("accounts.csv");
    fs::write(&file, FILE).unwrap();
    (token, file.to_str().unwrap().to_owned())
}

fn id_in(printed: &str) -> &str {
    let at = printed.find("imp_").unwrap_or_else(|| panic!("no id in:\n{printed}"));
    printed[at..].split_whitespace().next().unwrap()
}

#[test]
fn a_file_is_tried_imported_and_undone_while_the_service_runs() {
    Place::each(|place| {
        let service = place.serve();
        let (token, file) = prepared(place);
        let headers = [("Authorization", &*format!("Bearer {token}"))];
        let count = || {
            let (status, body) = service.request("GET", "/api/accounts/", &headers, "");
            assert_eq!(status, 200, "{body}");
            serde_json::from_str::<Value>(&body).unwrap()["items"].as_array().unwrap().len()
        };
        let tried = place.run(&["import", &file, "--company", "acme", "--dry-run"]);
        assert_eq!(tried.code, Some(0), "{}", tried.stderr);
        for part in [
            "separated by ;",
            "Stage -> status",
            "2 created, 0 updated",
            "1 failed",
            "1 row: Stage: must be one of",
            "(line 3)",
            "Nothing was",
        ] {
            assert!(tried.stdout.contains(part), "{part} is missing in:\n{}", tried.stdout);
        }
        assert_eq!(count(), 0);

        let map = ["--map", "Seats=ignore", "--mode", "create", "--yes"];
        let imported = place.run(&[&["import", &file, "--project", "acme"], &map[..]].concat());
        assert_eq!(imported.code, Some(1), "a row failed: {}", imported.stderr);
        for part in ["Imported 3 rows of accounts.csv", "Rows that failed: 1"] {
            assert!(imported.stdout.contains(part), "{part} is missing in:\n{}", imported.stdout);
        }
        assert_eq!(count(), 2);
        let errors = fs::read_to_string(place.path().join("accounts.errors.csv")).unwrap();
        assert!(errors.contains("crm-2,Globex,nowhere,,3,"), "{errors}");

        let undone = place.run(&["import", "undo", id_in(&imported.stdout)]);
        assert_eq!(undone.code, Some(0), "{}", undone.stderr);
        assert!(undone.stdout.contains("0 accounts restored, 2 removed, 0 kept"), "{}", undone.stdout);
        assert_eq!(count(), 0);
    });
}

#[test]
fn a_failed_import_says_why() {
    let place = Place::sqlite();
    let (_, file) = prepared(&place);
    let empty = place.path().join("empty.csv");
    fs::write(&empty, "").unwrap();
    let table: [(&[&str], &str); 8] = [
        (&["import"], "name the CSV file"),
        (&["import", &file], "name the company"),
        (&["import", &file, "--company", "acme"], "add --yes"),
        (&["import", &file, "--company", "nobody", "--yes"], "no such company: nobody"),
        (&["import", "/nowhere.csv", "--company", "acme", "--yes"], "/nowhere.csv cannot be read"),
        (&["import", empty.to_str().unwrap(), "--company", "acme", "--yes"], "has no header row"),
        (&["import", &file, "--company", "acme", "--yes", "--map", "Nope=name"], "no such column: Nope"),
        (&["import", "undo", "imp_00000000000000000000000000"], "no such import: imp_"),
    ];
    for (arguments, expected) in table {
        let ended = place.run(arguments);
        assert_eq!(ended.code, Some(1), "{arguments:?}: {}", ended.stdout);
        assert!(ended.stderr.contains(expected), "{arguments:?}: {}", ended.stderr);
    }
    let unknown = place.run(&["import", &file, "--company", "acme", "--map", "Stage=stage"]);
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.stderr.contains("must be one of: imported_id"), "{}", unknown.stderr);
}
