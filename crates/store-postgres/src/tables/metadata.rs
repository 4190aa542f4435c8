//! Metadata in a JSONB column, so that operators can query it. The store port defines the encoding.

use super::{Batch, Damage, RowReader};
use counterfoil_store::codec::metadata::{Metadata, decode, encode};

pub(super) fn put<'a>(metadata: &'a Metadata, batch: &mut Batch<'a>) {
    batch.text(encode(metadata));
}

pub(super) fn take(reader: &mut RowReader<'_>) -> Result<Metadata, Damage> {
    reader.word(decode)
}
