//! A tenant's own assets. Currencies need no row: they are known by data.

use crate::types::asset::Asset;
use crate::types::id::TenantId;
use crate::types::time::Time;

/// An asset a tenant defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AssetDefinition {
    /// Whose it is.
    pub tenant: TenantId,
    /// Its code; never a currency's.
    pub asset: Asset,
    /// How many decimals its minor unit has.
    pub exponent: u8,
    /// When it was defined.
    pub created_at: Time,
}
