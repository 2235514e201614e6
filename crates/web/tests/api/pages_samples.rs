//! Sample data on the pages: offered to a new company, shown as such, and removed with one button.

use rapport_domain::member::Role;
use serde_json::json;

use crate::harness::{Tenant, on_both_engines};
use crate::person::Person;

on_both_engines!(
    a_new_company_is_offered_samples_and_removes_them_with_one_button,
    samples_are_not_offered_beside_other_accounts,
    only_admins_get_the_buttons,
);

const ADD: &str = "Add sample data";
const REMOVE: &str = "Remove sample data";
const STEPS: &str = "Three steps to get started";

async fn a_new_company_is_offered_samples_and_removes_them_with_one_button(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    ana.see("/").await.expect(200).says(ADD).says_not(REMOVE);
    press(&ana, "/sample-data", "Added 36 sample accounts.").await;
    // The dashboard is alive, and the steps are still to be taken.
    let page = ana.see("/").await.expect(200).says(REMOVE).says_not(ADD);
    page.says(STEPS).says("1 of 3 done").says_not("Hide steps").says("Pipeline by stage");
    ana.see("/clients").await.expect(200).says("Cedar Logistics").says(REMOVE);
    ana.see("/pipeline").await.expect(200).says("Kestrel Insurance").says(REMOVE);
    ana.see("/channels").await.expect(200).says("Webinars (sample)");
    press(&ana, "/sample-data", "The sample data is already there.").await;
    press(&ana, "/sample-data/remove", "The sample data is removed.").await;
    ana.see("/").await.expect(200).says(ADD).says_not(REMOVE).says_not("Pipeline by stage");
    ana.see("/accounts").await.says("No accounts yet");
}

/// Presses a button, and expects the dashboard to say this.
async fn press(person: &Person<'_>, path: &str, said: &str) {
    let answer = person.send(path, &[]).await;
    assert_eq!(answer.leads_to("/"), "/");
    assert!(answer.flash().contains(said), "{}", answer.flash());
}

async fn samples_are_not_offered_beside_other_accounts(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    acme.account(json!({"imported_id": "crm-1"})).await;
    ana.see("/").await.expect(200).says(STEPS).says_not(ADD);
    // The page was open already.
    press(&ana, "/sample-data", "no sample data was added").await;
    ana.see("/accounts").await.says_not(REMOVE);
}

async fn only_admins_get_the_buttons(acme: Tenant) {
    let bo = Person::of(&acme, Role::Member);
    bo.see("/").await.expect(200).says(STEPS).says_not(ADD);
    bo.send("/sample-data", &[]).await.expect(403);
    Person::of(&acme, Role::Owner).send("/sample-data", &[]).await.expect(303);
    bo.see("/accounts").await.expect(200).says("Sample data is shown").says_not(REMOVE);
    bo.send("/sample-data/remove", &[]).await.expect(403);
}
