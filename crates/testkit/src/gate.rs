//! Something that stays shut until a test opens it.

use std::sync::Arc;

use tokio::sync::Semaphore;

/// Shut until it is opened; then it stays open.
#[derive(Debug, Clone)]
pub struct Gate(Arc<Semaphore>);

impl Default for Gate {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }
}

impl Gate {
    pub fn shut() -> Self {
        Self::default()
    }

    pub fn open(&self) {
        // A task that waits for a permit learns that there will never be one.
        self.0.close();
    }

    pub(crate) async fn opened(&self) {
        let _ = self.0.acquire().await;
    }
}
