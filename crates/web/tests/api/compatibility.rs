//! The API stays compatible with the last release: everything that a client of that release sends is accepted, and
//! everything that it reads is there. `docs/versioning.md` says what that means, and `rules` checks it.
//!
//! `docs/openapi-0.1.0.json` is the document of the last release. At the next release, replace it by the document of that
//! one, and add the release to `docs/api-changelog.md`.

mod rules;

use serde_json::{Value, json};

use self::rules::breaks;

const RELEASED: &str = include_str!("../../../../docs/openapi-0.1.0.json");

fn released() -> Value {
    serde_json::from_str(RELEASED).expect("docs/openapi-0.1.0.json")
}

fn current() -> Value {
    serde_json::to_value(rapport_web::openapi_document()).expect("the document is plain data")
}

/// Members of PATCH requests that took null and ignored it. `docs/versioning.md` says why they refuse it now.
const IGNORED_NULLS: [(&str, &str); 5] = [
    ("/api/accounts/{id}/", "custom_fields name status"),
    ("/api/campaigns/{id}/", "goal include_trials name"),
    ("/api/members/{id}/", "active role"),
    (
        "/api/settings/",
        "audit_days cadence_days default_currency delete_role digest_enabled digest_weekday export_role name \
         session_idle_minutes session_max_minutes time_zone tracked_stages",
    ),
    ("/api/webhooks/{id}/", "events url"),
];

#[test]
fn the_api_is_compatible_with_the_last_release() {
    let decided: Vec<String> = IGNORED_NULLS
        .into_iter()
        .flat_map(|(path, members)| members.split_whitespace().map(move |member| (path, member)))
        .map(|(path, member)| format!("PATCH {path} request /{member}: no longer accepts null"))
        .collect();
    let mut breaks = breaks(&released(), &current());
    let found = |one: &String| breaks.contains(one);
    assert!(decided.iter().all(found), "a decided change was not made: {breaks:#?}");
    breaks.retain(|one| !decided.contains(one));
    assert!(breaks.is_empty(), "these changes break clients of the last release:\n{}", breaks.join("\n"));
}

#[test]
fn the_released_document_is_one() {
    let released = released();
    assert_eq!(released["info"]["version"], json!("0.1.0"));
    assert!(released["paths"].as_object().unwrap().len() > 60);
    assert!(breaks(&released, &released).is_empty());
}

/// Changes the document of now, and expects what is said about it.
#[track_caller]
fn expect(expected: &[&str], change: impl FnOnce(&mut Value)) {
    let (before, mut after) = (current(), current());
    change(&mut after);
    assert_ne!(after, before, "the change changes nothing");
    assert_eq!(breaks(&before, &after), expected);
}

fn at<'a>(document: &'a mut Value, pointer: &str) -> &'a mut Value {
    document.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer} is not in the document"))
}

fn schema<'a>(document: &'a mut Value, name: &str) -> &'a mut Value {
    at(document, &format!("/components/schemas/{name}"))
}

fn remove(list: &mut Value, word: &str) {
    let list = list.as_array_mut().expect("a list");
    let before = list.len();
    list.retain(|one| one != word);
    assert!(list.len() < before, "{word} is not in the list");
}

#[test]
fn removed_operations_and_parameters_are_found() {
    expect(&["DELETE /api/tokens/{id}/: the operation is gone"], |document| {
        at(document, "/paths/~1api~1tokens~1{id}~1").as_object_mut().unwrap().remove("delete");
    });
    expect(&["GET /api/clients/: the parameter tab is gone"], |document| {
        let parameters = at(document, "/paths/~1api~1clients~1/get/parameters").as_array_mut().unwrap();
        parameters.retain(|parameter| parameter["name"] != "tab");
    });
    expect(&["GET /api/clients/: the parameter team is required"], |document| {
        let new = json!({"name": "team", "in": "query", "required": true, "schema": {"type": "string"}});
        at(document, "/paths/~1api~1clients~1/get/parameters").as_array_mut().unwrap().push(new);
    });
    expect(&["POST /api/tokens/: the operationId was create_token"], |document| {
        *at(document, "/paths/~1api~1tokens~1/post/operationId") = json!("make_token");
    });
}

#[test]
fn narrower_requests_are_found() {
    expect(&["POST /api/tokens/ request /rate_limit: is required now"], |document| {
        schema(document, "TokenCreate")["required"].as_array_mut().unwrap().push(json!("rate_limit"));
    });
    expect(&["POST /api/tokens/ request /owner: is gone"], |document| {
        schema(document, "TokenCreate")["properties"].as_object_mut().unwrap().remove("owner");
    });
    expect(&["POST /api/tokens/ request /rate_limit: no longer accepts null"], |document| {
        schema(document, "TokenCreate")["properties"]["rate_limit"]["type"] = json!("integer");
    });
    expect(&["POST /api/tokens/ request /name: maxLength is 100, was 120"], |document| {
        schema(document, "TokenCreate")["properties"]["name"]["maxLength"] = json!(100);
    });
    expect(&["POST /api/tokens/ request /rate_limit: minimum is 5, was 1"], |document| {
        schema(document, "TokenCreate")["properties"]["rate_limit"]["minimum"] = json!(5);
    });
    let fewer = [
        "POST /api/accounts/{id}/contacts/ request /kind: no longer accepts \"meeting\"",
        "PATCH /api/accounts/{id}/contacts/{contact}/ request /kind: no longer accepts \"meeting\"",
    ];
    expect(&fewer, |document| {
        remove(&mut schema(document, "ContactKind")["enum"], "meeting");
    });
    expect(&["POST /api/tokens/ request: application/json is gone"], |document| {
        at(document, "/paths/~1api~1tokens~1/post/requestBody/content")
            .as_object_mut()
            .unwrap()
            .remove("application/json");
    });
}

#[test]
fn poorer_responses_are_found() {
    expect(
        &["GET /api/tokens/ 200 /items[]/prefix: is gone", "POST /api/tokens/ 201 /prefix: is gone"],
        |document| {
            schema(document, "Token")["properties"].as_object_mut().unwrap().remove("prefix");
        },
    );
    expect(
        &[
            "GET /api/tokens/ 200 /items[]/prefix: is no longer always there",
            "POST /api/tokens/ 201 /prefix: is no longer always there",
        ],
        |document| remove(&mut schema(document, "Token")["required"], "prefix"),
    );
    expect(
        &[
            "GET /api/tokens/ 200 /items[]/name: can be null now",
            "POST /api/tokens/ 201 /name: can be null now",
        ],
        |document| schema(document, "Token")["properties"]["name"]["type"] = json!(["string", "null"]),
    );
    expect(&["POST /api/tokens/: the response 201 is gone"], |document| {
        at(document, "/paths/~1api~1tokens~1/post/responses").as_object_mut().unwrap().remove("201");
    });
    expect(&["the error code rate_limited is gone"], |document| {
        remove(&mut schema(document, "Problem")["properties"]["code"]["enum"], "rate_limited");
    });
    expect(&["the error code too_long is gone"], |document| {
        remove(&mut schema(document, "FieldError")["properties"]["code"]["enum"], "too_long");
    });
}

#[test]
fn poorer_events_are_found() {
    expect(&["webhook.test: the event is gone"], |document| {
        at(document, "/webhooks").as_object_mut().unwrap().remove("webhook.test");
    });
    expect(&["client.contact_due payload /data/due_at: is gone"], |document| {
        let event = schema(document, "ClientContactDueEvent");
        event["properties"]["data"]["properties"].as_object_mut().unwrap().remove("due_at");
    });
    expect(&["account.created: the header X-Service-Attempt is gone"], |document| {
        let headers = at(document, "/webhooks/account.created/post/parameters").as_array_mut().unwrap();
        headers.retain(|header| header["name"] != "X-Service-Attempt");
    });
}

#[test]
fn additions_are_compatible() {
    expect(&[], |document| {
        let paths = at(document, "/paths").as_object_mut().unwrap();
        let copy = paths["/api/clients/"].clone();
        paths.insert("/api/customers/".to_owned(), copy);
    });
    expect(&[], |document| {
        let new = json!({"name": "team", "in": "query", "schema": {"type": "string"}});
        at(document, "/paths/~1api~1clients~1/get/parameters").as_array_mut().unwrap().push(new);
    });
    expect(&[], |document| {
        schema(document, "TokenCreate")["properties"]["colour"] = json!({"type": "string"});
        let token = schema(document, "Token");
        token["properties"]["colour"] = json!({"type": "string"});
        token["required"].as_array_mut().unwrap().push(json!("colour"));
    });
    expect(&[], |document| schema(document, "TokenCreate")["properties"]["name"]["maxLength"] = json!(500));
    expect(&[], |document| {
        schema(document, "ContactKind")["enum"].as_array_mut().unwrap().push(json!("letter"));
    });
    expect(&[], |document| {
        let codes = &mut schema(document, "Problem")["properties"]["code"]["enum"];
        codes.as_array_mut().unwrap().push(json!("too_blue"));
    });
}
