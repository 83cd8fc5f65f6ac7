//! What the rooms that speak HTTP share: the accept loop, the envelope, the errors table, the
//! reader's language, limits on bodies, and who is calling.

mod access_token;
mod activity;
mod answer;
mod body;
mod browser;
mod caller;
mod connection;
mod crowd;
mod error;
mod format;
mod issues;
mod language;
mod listener;
mod messages;
mod order_data;
mod page;
mod path;
mod query;
mod redact;
mod reply;

pub(crate) use access_token::issue_token;
pub(crate) use activity::Streaming;
pub(crate) use answer::{ErrorReply, Exchange};
pub(crate) use body::{Body, field, read_form, read_json_bytes, read_policy_report, whole_number};
pub(crate) use browser::{is_foreign, origin_of, own_origin, protect};
pub(crate) use caller::{Caller, authorization};
pub(crate) use error::{ApiError, Looks, TokenFault};
pub(crate) use format::{centimos, luanda_time, money, qr};
pub(crate) use issues::{FieldFault, Issue};
pub(crate) use language::{Language, texts};
pub(crate) use listener::Listener;
pub use listener::ListenerError;
pub(crate) use messages::all_errors;
pub(crate) use order_data::OrderData;
pub(crate) use page::{Asset, page_response};
pub(crate) use path::Path;
pub(crate) use query::{Pairs, application_parameter, optional_parameter, parameter};
pub(crate) use reply::{Envelope, Reply, json};
