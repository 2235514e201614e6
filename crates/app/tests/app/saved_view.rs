//! A company's saved views of the account list.

use rapport_app::Error;
use rapport_app::saved_view::{DeleteView, RenameView, SaveView};
use rapport_domain::saved_view::{MAX_VIEWS, Save};
use rapport_testkit::{TestApp, TestCompany};

use crate::refusal;

fn save(company: &TestCompany, name: &str, query: &str, replace: bool) -> Result<(), Error> {
    company.write(SaveView(Save { name: name.to_owned(), query: query.to_owned(), replace }))
}

fn views(company: &TestCompany) -> Vec<(String, String)> {
    let views = company.read(rapport_store::saved_view::list);
    views.into_iter().map(|view| (view.name, view.query)).collect()
}

fn pair(name: &str, query: &str) -> (String, String) {
    (name.to_owned(), query.to_owned())
}

#[test]
fn a_name_is_one_view_without_regard_to_case() {
    TestApp::on_both(|app| {
        save(app, "Lost", "status=lost", false).unwrap();
        save(app, "Älter", "sort=created_at", false).unwrap();
        assert_eq!(refusal(save(app, "LOST", "q=a", false)), "conflict name_taken");
        save(app, "LOST", "q=b", true).unwrap();
        save(app, "New", "q=c", true).unwrap();
        let expected = [pair("LOST", "q=b"), pair("New", "q=c"), pair("Älter", "sort=created_at")];
        assert_eq!(views(app), expected);
        let rename =
            |from: &str, to: &str| app.write(RenameView { from: from.to_owned(), to: to.to_owned() });
        assert_eq!(refusal(rename("new", "ÄLTER")), "conflict name_taken");
        assert_eq!(views(app), expected, "a refused rename changes nothing");
        rename("new", "NEW").unwrap();
        assert_eq!(refusal(rename("nothing", "x")), "no such view");
        assert_eq!(app.write(DeleteView("lost".to_owned())).unwrap().query, "q=b");
        assert_eq!(refusal(app.write(DeleteView("lost".to_owned()))), "no such view");
        assert_eq!(views(app), [pair("NEW", "q=c"), pair("Älter", "sort=created_at")]);
    });
}

#[test]
fn a_company_has_so_many_and_no_more() {
    TestApp::on_both(|app| {
        let globex = app.company("globex");
        for n in 0..MAX_VIEWS {
            save(app, &format!("View {n}"), "", false).unwrap();
        }
        assert_eq!(refusal(save(app, "One more", "", false)), "conflict too_many_views");
        save(app, "view 1", "q=a", true).unwrap();
        save(&globex, "View 1", "", false).unwrap();
        assert_eq!(views(app).len(), MAX_VIEWS);
    });
}
