//! Decorators over optional services that several servers share (Redis). Losing such a service
//! costs latency, never correctness.
//!
//! Each decorator has a null form, so no other part of the engine asks whether a service is there:
//! - [`fence`] wraps the work on a payment, so that two servers do not start it at the same time.
//! - [`answers`] is the second level of the answer cache behind this process's memory.

pub mod answers;
pub(crate) mod fence;

use answers::SharedCache;
use counterfoil_core::types::time::Span;
use counterfoil_gateway::fence::Fence;
use std::sync::Arc;

/// Optional services shared by several servers. The default is none of them.
#[derive(Default)]
pub struct SharedServices {
    /// The gateway fence, and how long a hold lasts unless renewed.
    pub fence: Option<(Arc<dyn Fence>, Span)>,
    /// The cache of stored answers.
    pub shelf: Option<Arc<dyn SharedCache>>,
}
