//! Everything that is stored about a company or an account, as a file.

use axum::response::Response;
use parking_lot::Mutex;
use rapport_app::export::{Exported, RecordExport};
use rapport_app::full_export::{Place, Rows, Scope, Subject, Writer, extension, media_type, page, subject};
use rapport_app::{Access, Answer, App, Error, Needs};
use rapport_domain::file_format::Format;
use rapport_domain::id::AccountId;
use rapport_store::Snapshot;

use crate::shared::paged_file::{self, Label, Part, Source};
use crate::shared::parameters::Parameters;
use crate::shared::{ACCOUNT_DATA, COMPANY};

/// What somebody asks for.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// None for the whole company.
    pub account: Option<AccountId>,
    pub format: Format,
}

/// The parameter with the file type.
pub fn format(parameters: &mut Parameters) -> Format {
    parameters.optional("format", Format::parse).unwrap_or(Format::JsonLines)
}

impl Wanted {
    /// The beginning of the file; `None` if there is no such account.
    pub fn begin(self, snapshot: &mut Snapshot) -> Result<Option<Begun>, rapport_store::Error> {
        let scope = match self.account {
            None => Scope::Company,
            Some(id) => match subject(snapshot, id)? {
                Some(found) => Scope::Account(found),
                None => return Ok(None),
            },
        };
        let page = page(snapshot, &scope, &Place::FIRST)?;
        Ok(Some(Begun { scope, format: self.format, page }))
    }
}

/// The beginning of an export: its first page.
pub struct Begun {
    scope: Scope,
    format: Format,
    page: Rows,
}

impl Begun {
    /// Records the export, which comes before its first byte.
    pub fn record(&self) -> RecordExport {
        let what = match &self.scope {
            Scope::Company => Exported::Company,
            Scope::Account(Subject { id, .. }) => Exported::Account(*id),
        };
        RecordExport::whole(what, self.format.as_str())
    }
}

/// The export as a response. The file name consists of the company's short name, the account's id and the date.
pub fn respond(app: &App, access: Access, begun: Answer<Begun>) -> Result<Response, Error> {
    let Answer { reply: Begun { scope, format, page }, company, now } = begun;
    let (name, needs) = match &scope {
        Scope::Company => (company.slug.as_str().to_owned(), COMPANY),
        Scope::Account(Subject { id, .. }) => (format!("{} {id}", company.slug.as_str()), ACCOUNT_DATA),
    };
    let label = Label {
        name: &name,
        day: now.day_in(&company.settings.time_zone),
        extension: extension(format),
        media_type: media_type(format),
    };
    let writer = Mutex::new(Writer::begin(format, &scope, &company, now)?);
    let file = File { app: app.clone(), access, needs, scope, writer };
    let first = file.write(page)?;
    Ok(paged_file::respond(&label, first, file))
}

struct File {
    app: App,
    access: Access,
    needs: Needs,
    scope: Scope,
    /// A page is written once: only reading it is tried again.
    writer: Mutex<Writer>,
}

impl File {
    fn write(&self, page: Rows) -> Result<Part<Place>, Error> {
        let next = page.next.clone();
        Ok(Part { text: self.writer.lock().write(page)?, next })
    }
}

impl Source for File {
    type Place = Place;

    async fn part(&self, place: Place) -> Result<Part<Place>, Error> {
        let scope = self.scope.clone();
        let read = self.app.read(&self.access, self.needs, move |snapshot, _| page(snapshot, &scope, &place));
        self.write(read.await?.reply)
    }
}
