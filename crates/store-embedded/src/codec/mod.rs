//! The column that holds more than one value and is this store's own: a commit's touched rows. Golden bytes pin it: a
//! change here is a change of the file's format.

pub(crate) mod touched;
