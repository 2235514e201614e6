//! Accounts that were deleted: what is still known of them.

use serde::Serialize;
use utoipa::ToSchema;

use crate::id::AccountId;
use crate::time::Time;

/// A deleted account. It holds nothing that was said about the account, only how others know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tombstone {
    pub id: AccountId,
    /// An erasure removes it.
    pub imported_id: Option<String>,
    pub deleted_at: Time,
}

/// An account that was deleted.
#[derive(Serialize, ToSchema)]
#[schema(as = DeletedAccount)]
pub struct TombstoneView<'a> {
    #[schema(value_type = String, example = "acc_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    id: AccountId,
    /// Null if the account had none or was erased. Another account may have it by now.
    #[schema(required = true, example = "CRM-00418")]
    imported_id: Option<&'a str>,
    /// Always true.
    deleted: bool,
    #[schema(value_type = String, format = DateTime)]
    deleted_at: Time,
}

impl Tombstone {
    pub fn view(&self) -> TombstoneView<'_> {
        TombstoneView {
            id: self.id,
            imported_id: self.imported_id.as_deref(),
            deleted: true,
            deleted_at: self.deleted_at,
        }
    }
}
