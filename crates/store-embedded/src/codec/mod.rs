//! The two columns that hold more than one value: metadata and a commit's touched rows. Golden vectors pin both: a
//! change here is a change of the file's format.

pub(crate) mod metadata;
pub(crate) mod touched;
