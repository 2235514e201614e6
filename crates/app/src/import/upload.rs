//! An upload: a file that arrives in pieces and is stored in the database in pieces of another size.

use std::sync::Arc;

use rapport_domain::id::{FormId, ImportId};
use rapport_domain::import::charset::{Charset, Intake};
use rapport_domain::import::head::Head;
use rapport_domain::import::reading::Delimiter;
use rapport_domain::import::{Import, MAX_OPEN};
use rapport_store::import_data::CHUNK_BYTES;
use rapport_store::{Lane, Tx, import, import_data};

use super::{NEEDS, RemoveImport, conflict, lock, patiently, recall};
use crate::App;
use crate::access::{Access, Needs};
use crate::command::{Command, Context};
use crate::error::Error;
use crate::submission::{ALREADY_SENT, Claim, Once, Outcome, Render, Repeatable};

/// What the caller says about a file.
#[derive(Debug, Clone, Default)]
pub struct UploadOptions {
    pub filename: String,
    /// The encoding to use instead of detecting it.
    pub charset: Option<Charset>,
    pub delimiter: Option<Delimiter>,
}

/// A file being uploaded.
pub struct Upload {
    app: App,
    access: Access,
    id: ImportId,
    delimiter: Option<Delimiter>,
    /// The form that sends the file; it counts once.
    form: Option<FormId>,
    /// The import whose choices this file takes over, if it has the same columns.
    like: Option<ImportId>,
    intake: Intake,
    /// Bytes not written yet.
    pending: Vec<u8>,
    /// The first piece, used to detect the file's format.
    head: Vec<u8>,
    chunks: i64,
    bytes: i64,
}

impl Upload {
    pub async fn begin(app: &App, access: &Access, options: UploadOptions) -> Result<Self, Error> {
        let UploadOptions { filename, charset, delimiter } = options;
        let id = app.write(access, BeginUpload { filename }).await?;
        Ok(Self {
            app: app.clone(),
            access: access.clone(),
            id,
            delimiter,
            form: None,
            like: None,
            intake: Intake::new(charset),
            pending: Vec::with_capacity(CHUNK_BYTES),
            head: Vec::new(),
            chunks: 0,
            bytes: 0,
        })
    }

    pub fn id(&self) -> ImportId {
        self.id
    }

    /// Makes repeated submissions of a form count once: the first complete upload wins.
    #[must_use]
    pub fn of_form(self, form: FormId) -> Self {
        Self { form: Some(form), ..self }
    }

    /// Takes over what was chosen for another import, if the columns are the same.
    #[must_use]
    pub fn like(self, import: ImportId) -> Self {
        Self { like: Some(import), ..self }
    }

    /// Takes the next bytes of the file.
    pub async fn take(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.intake.take(bytes, &mut self.pending);
        while self.pending.len() >= CHUNK_BYTES {
            let rest = self.pending.split_off(CHUNK_BYTES);
            let chunk = std::mem::replace(&mut self.pending, rest);
            self.write(chunk).await?;
        }
        Ok(())
    }

    async fn write(&mut self, chunk: Vec<u8>) -> Result<(), Error> {
        if self.chunks == 0 {
            self.head.clone_from(&chunk);
        }
        let (number, length) = (self.chunks, i64::try_from(chunk.len()).unwrap_or(0));
        let command = AddChunk { id: self.id, number, bytes: Arc::from(chunk) };
        patiently(&self.app, &self.access, command).await?;
        self.chunks += 1;
        self.bytes += length;
        Ok(())
    }

    /// Completes the file and reports what it looks like.
    pub async fn finish(mut self) -> Result<Import, Error> {
        let finished = match self.complete().await {
            Ok(finish) => self.settle(finish).await,
            Err(error) => Err(error),
        };
        if let Err(Error::Invalid(_) | Error::Conflict { code: ALREADY_SENT, .. }) = finished {
            self.abandon().await;
        }
        finished
    }

    /// The same for a request that may be repeated: the first complete upload wins.
    pub async fn finish_once(
        mut self,
        claim: Claim,
        render: Render<Import, ()>,
    ) -> Result<Outcome<()>, Error> {
        let finished = match self.complete().await {
            Ok(finish) => {
                let command = Repeatable { claim, command: finish, render };
                patiently(&self.app, &self.access, command).await
            }
            Err(error) => Err(error),
        };
        if let Err(Error::Invalid(_)) | Ok(Outcome::Repeated { .. } | Outcome::Reused) = finished {
            self.abandon().await;
        }
        finished
    }

    /// Writes the rest of the file.
    async fn complete(&mut self) -> Result<FinishUpload, Error> {
        let charset = std::mem::replace(&mut self.intake, Intake::new(None)).finish(&mut self.pending);
        while !self.pending.is_empty() {
            let rest = self.pending.split_off(self.pending.len().min(CHUNK_BYTES));
            let chunk = std::mem::replace(&mut self.pending, rest);
            self.write(chunk).await?;
        }
        let is_whole = self.chunks <= 1;
        let head = Head::of(&self.head, is_whole, charset, self.delimiter)?;
        Ok(FinishUpload { id: self.id, bytes: self.bytes, charset, head, like: self.like })
    }

    async fn settle(&self, finish: FinishUpload) -> Result<Import, Error> {
        match self.form {
            Some(form) => patiently(&self.app, &self.access, Once { form, command: finish }).await,
            None => patiently(&self.app, &self.access, finish).await,
        }
    }

    /// Discards the bytes received so far. If this fails, retention does it later.
    pub async fn abandon(self) {
        if let Err(error) = self.app.write(&self.access, RemoveImport(self.id)).await {
            crate::log_failure!(error, import = %self.id, "failed to discard an upload; retention will");
        }
    }
}

struct BeginUpload {
    filename: String,
}

impl Command for BeginUpload {
    type Reply = ImportId;
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<ImportId, Error> {
        if import::open(tx)? >= MAX_OPEN {
            let detail = format!("{MAX_OPEN} imports are still open; start or remove some first");
            return Err(Error::conflict("too_many_imports", detail));
        }
        let new = Import::new(cx.id(), self.filename.clone(), cx.actor().clone(), cx.now);
        import::insert(tx, &new)?;
        Ok(new.id)
    }
}

#[derive(Clone)]
struct AddChunk {
    id: ImportId,
    number: i64,
    bytes: Arc<[u8]>,
}

impl Command for AddChunk {
    type Reply = ();
    const NEEDS: Needs = NEEDS;
    /// A large file yields to all other work.
    const LANE: Lane = Lane::Background;

    fn weight(&self) -> usize {
        self.bytes.len() / 1024
    }

    fn run(&self, tx: &mut Tx, _: &Context) -> Result<(), Error> {
        lock(tx, self.id)?;
        Ok(import_data::insert_chunk(tx, self.id, self.number, &self.bytes)?)
    }
}

#[derive(Clone)]
struct FinishUpload {
    id: ImportId,
    bytes: i64,
    charset: Charset,
    head: Head,
    like: Option<ImportId>,
}

impl Command for FinishUpload {
    type Reply = Import;
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, _: &Context) -> Result<Import, Error> {
        use rapport_domain::import::{NotNow, State};
        let mut import = lock(tx, self.id)?;
        if import.state != State::Uploading {
            let detail = "the file is already uploaded".to_owned();
            return Err(conflict(NotNow { code: "uploaded", detail }));
        }
        import.arrive(self.bytes, self.charset, self.head.clone());
        recall(tx, &mut import)?;
        if let Some(like) = self.like
            && let Some(other) = import::get(tx, like)?
            && other.column_names() == import.column_names()
        {
            (import.mapping, import.formats, import.mode) = (other.mapping, other.formats, other.mode);
        }
        import::update(tx, &import)?;
        Ok(import)
    }
}
