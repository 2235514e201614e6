//! The rows of an import that failed, uploaded again as a file of their own: another mapping may fix them.

use rapport_domain::id::{FormId, ImportId};
use rapport_domain::import::charset::Charset;
use rapport_domain::import::reading::Delimiter;
use rapport_domain::import::{Import, MAX_FILENAME};

use super::{ErrorFile, Upload, UploadOptions};
use crate::App;
use crate::access::Access;
use crate::error::Error;

/// Uploads the failed rows of an import, with the same columns and choices. If the form is sent twice, it counts once.
pub async fn retry(app: &App, access: &Access, id: ImportId, form: FormId) -> Result<Import, Error> {
    let mut file = ErrorFile::to_import_again(app, access, id).await?;
    let filename = file.name().chars().take(MAX_FILENAME.max).collect();
    let options =
        UploadOptions { filename, charset: Some(Charset::UTF_8), delimiter: Some(Delimiter::COMMA) };
    let mut upload = Upload::begin(app, access, options).await?.of_form(form).like(id);
    loop {
        let taken = match file.next().await {
            Ok(None) => return upload.finish().await,
            Ok(Some(part)) => upload.take(&part).await,
            Err(error) => Err(error),
        };
        if let Err(error) = taken {
            upload.abandon().await;
            return Err(error);
        }
    }
}
