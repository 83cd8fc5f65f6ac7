//! Why a genuine event was refused: the mistakes we know are made on purpose, one after the other,
//! until the handler accepts one. Then it makes the same mistake.

use super::delivery::{Event, Sender, Signature};
use super::finding::Finding;
use crate::forms::{self, Notation};
use crate::http::Answer;

/// What the handler does differently, by the answer it gave to a genuine event.
pub(super) async fn refusal(sender: &Sender, event: &Event, answer: &Answer) -> Finding {
    match answer.status {
        300..=399 => return Finding::Redirects,
        404 => return Finding::NotFound,
        405 => return Finding::MethodNotAllowed,
        500.. => return Finding::Breaks,
        _ => {}
    }
    if let Some(found) = mistake(sender, event).await {
        return found;
    }
    match answer.status {
        401 if answer.headers.contains_key("www-authenticate") => Finding::Login,
        401 => Finding::OtherSecret,
        403 => Finding::Forbidden,
        other => Finding::Refuses(other),
    }
}

/// The mistake that makes the handler accept this event.
pub(super) async fn mistake(sender: &Sender, event: &Event) -> Option<Finding> {
    let right = forms::right(sender.secret(), &event.body);
    let notations = Notation::WRONG
        .into_iter()
        .map(|notation| (notation.write(&right), Finding::Expects(notation)));
    let wrong = forms::wrong(sender.secret(), &event.body)
        .into_iter()
        .map(|(form, digest)| (Notation::Hex.write(&digest), Finding::Computes(form)));
    for (token, finding) in wrong.chain(notations) {
        let told = sender.send(event, Signature::Text(token)).await;
        if told.answer.is_ok_and(|answer| (200..300).contains(&answer.status)) {
            return Some(finding);
        }
    }
    None
}
