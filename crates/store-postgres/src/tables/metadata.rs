//! Metadata in a JSONB column, so that operators can query it. The form itself is the port's.

use super::{Batch, Damage, Line};
use counterfoil_store::codec::metadata::{Metadata, decode, encode};

pub(super) fn put<'a>(metadata: &'a Metadata, batch: &mut Batch<'a>) {
    batch.text(encode(metadata));
}

pub(super) fn take(line: &mut Line<'_>) -> Result<Metadata, Damage> {
    line.word(decode)
}
