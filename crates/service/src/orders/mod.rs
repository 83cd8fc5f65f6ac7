//! The only room that changes an order, one file per verb.

mod create;

pub use create::{CreateError, Creation, OrderRequest, create};
