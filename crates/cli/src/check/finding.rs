//! What is wrong with the handler, said once however many cases it fails. Pure.

use super::case::Case;
use super::judge::{Fault, Row};
use crate::forms::{Form, Notation};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    // Why a genuine event is refused.
    OtherSecret,
    Computes(Form),
    Expects(Notation),
    Login,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    Redirects,
    Breaks,
    Refuses(u16),
    // What is believed that should not be.
    AcceptsAnything,
    AcceptsMissing,
    ComparesPart,
    IgnoresCase,
    AcceptsNotation,
    HashesOtherBytes,
    Trims,
    ActsDespiteRefusal,
    NotA401(u16),
    ParsesFirst,
    // What is done with what is genuine.
    NoEffect,
    OverwritesFinal,
    RefusesDuplicates,
    FailsInParallel,
    FulfilsTwice,
    IgnoresAmount,
    RefusesOtherAmount,
    RefusesOddFormat,
    RefusesUnknownOrder,
    MakesUpOrders,
    RefusesUnknownEvent,
    ActsOnUnknownEvent,
    BreaksOnNonsense,
    SwallowsNonsense,
    Slow,
}

impl Finding {
    /// Its name in JSON; stable.
    pub(super) fn code(self) -> &'static str {
        match self {
            Self::OtherSecret => "wrong-secret",
            Self::Computes(form) => form.code(),
            Self::Expects(Notation::UpperCase) => "expects-upper-case",
            Self::Expects(Notation::Prefixed) => "expects-sha256-prefix",
            Self::Expects(Notation::Base64) => "expects-base64",
            Self::Expects(Notation::Hex) => "expects-hex",
            Self::Login => "behind-a-login",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not-found",
            Self::MethodNotAllowed => "method-not-allowed",
            Self::Redirects => "redirects",
            Self::Breaks => "breaks",
            Self::Refuses(_) => "refuses",
            Self::AcceptsAnything => "accepts-anything",
            Self::AcceptsMissing => "accepts-missing-signature",
            Self::ComparesPart => "compares-a-part",
            Self::IgnoresCase => "ignores-case",
            Self::AcceptsNotation => "accepts-other-notation",
            Self::HashesOtherBytes => "hashes-other-bytes",
            Self::Trims => "trims-the-body",
            Self::ActsDespiteRefusal => "acts-despite-refusal",
            Self::NotA401(_) => "refuses-without-401",
            Self::ParsesFirst => "parses-before-verifying",
            Self::NoEffect => "no-effect",
            Self::OverwritesFinal => "overwrites-final-state",
            Self::RefusesDuplicates => "refuses-duplicates",
            Self::FailsInParallel => "fails-in-parallel",
            Self::FulfilsTwice => "fulfils-twice",
            Self::IgnoresAmount => "ignores-amount",
            Self::RefusesOtherAmount => "refuses-other-amount",
            Self::RefusesOddFormat => "refuses-odd-format",
            Self::RefusesUnknownOrder => "refuses-unknown-order",
            Self::MakesUpOrders => "makes-up-orders",
            Self::RefusesUnknownEvent => "refuses-unknown-event",
            Self::ActsOnUnknownEvent => "acts-on-unknown-event",
            Self::BreaksOnNonsense => "breaks-on-bad-json",
            Self::SwallowsNonsense => "swallows-bad-json",
            Self::Slow => "slow",
        }
    }
}

/// What the verdicts mean, beside what was found out about a refused event.
pub(super) fn find(rows: &[Row], diagnosed: Vec<Finding>) -> Vec<Finding> {
    let mut found = diagnosed;
    found.extend(believed(rows, &found));
    found.extend(done(rows, &found));
    found.dedup();
    found
}

fn row(rows: &[Row], case: Case) -> Option<&Row> {
    rows.iter().find(|row| row.case == case)
}

/// Signatures.
fn believed(rows: &[Row], diagnosed: &[Finding]) -> Vec<Finding> {
    // Whoever answers 401 and acts all the same has a fault of another kind.
    let believed = |case| {
        let fooled = |row: &Row| row.was_taken() || (row.acted() && row.status() != Some(401));
        row(rows, case).is_some_and(fooled)
    };
    if believed(Case::OtherSecret) && believed(Case::NotHex) {
        return vec![Finding::AcceptsAnything];
    }
    let re_encodes = diagnosed.iter().any(|f| matches!(f, Finding::Computes(Form::Reencoded(_))));
    let expects = diagnosed.iter().any(|finding| matches!(finding, Finding::Expects(_)));
    let trims = diagnosed.contains(&Finding::Computes(Form::LineBreakRemoved));
    // Whoever does not even let us in says the same to everybody.
    let outside = |finding: &Finding| {
        matches!(
            finding,
            Finding::Redirects
                | Finding::NotFound
                | Finding::MethodNotAllowed
                | Finding::Forbidden
                | Finding::Refuses(_)
        )
    };
    let outside = diagnosed.iter().any(outside);
    let refused_otherwise = rows.iter().filter(|_| !outside).find_map(|row| {
        let wrong = |fault: &Fault| match fault {
            Fault::Answer { got: got @ (300..=400 | 402..=499), .. } => Some(*got),
            _ => None,
        };
        let forged = !row.case.is_genuine() && row.case != Case::UnsignedNonsense;
        row.faults.iter().find_map(wrong).filter(|_| forged)
    });
    let despite =
        rows.iter().any(|row| !row.case.is_genuine() && row.status() == Some(401) && row.acted());
    let nonsense = row(rows, Case::UnsignedNonsense);
    let parses = nonsense.is_some_and(Row::failed)
        && row(rows, Case::NotHex).is_some_and(|row| !row.failed());
    let either = |a, b| believed(a) || believed(b);
    [
        (either(Case::MissingSignature, Case::EmptySignature), Finding::AcceptsMissing),
        (
            either(Case::ShortSignature, Case::LongSignature) || believed(Case::HalfRight),
            Finding::ComparesPart,
        ),
        (believed(Case::Capitals), Finding::IgnoresCase),
        (either(Case::Prefixed, Case::Base64) && !expects, Finding::AcceptsNotation),
        (
            (believed(Case::ReencodedBody) && !re_encodes) || believed(Case::ChangedBody),
            Finding::HashesOtherBytes,
        ),
        (
            believed(Case::AddedLineBreak)
                && !believed(Case::ReencodedBody)
                && !believed(Case::ChangedBody)
                && !trims,
            Finding::Trims,
        ),
        (despite, Finding::ActsDespiteRefusal),
        (parses, Finding::ParsesFirst),
    ]
    .into_iter()
    .filter_map(|(is_so, finding)| is_so.then_some(finding))
    .chain(refused_otherwise.map(Finding::NotA401))
    .collect()
}

/// States, answers and times.
fn done(rows: &[Row], diagnosed: &[Finding]) -> Vec<Finding> {
    let of = |case| row(rows, case).filter(|row| row.seen.is_some());
    let refused = |case| of(case).is_some_and(|row| !row.was_taken());
    let acted = |case| of(case).is_some_and(Row::acted);
    let counted = |case| {
        let twice = |row: &Row| row.faults.iter().any(|f| matches!(f, Fault::Counted(_)));
        of(case).is_some_and(twice)
    };
    let unpaid = |row: &Row| row.faults.contains(&Fault::Fulfilled);
    let finals = [Case::CancelAfterPaid, Case::PendingAfterPaid, Case::PaidAfterCancelled];
    let again = [Case::Duplicate, Case::CancelAfterPaid, Case::PendingAfterPaid];
    let asleep = [Case::Valid, Case::Cancelled, Case::Parallel, Case::OddFormat];
    let nonsense = of(Case::SignedNonsense).filter(|row| row.failed());
    let slow = |fault: &Fault| matches!(fault, Fault::Slow(_) | Fault::NoAnswer(_));
    let unknown = [Case::UnknownEvent, Case::UnknownStatus];
    [
        (asleep.iter().any(|case| acted(*case) && !refused(*case)), Finding::NoEffect),
        (finals.iter().any(|case| acted(*case)), Finding::OverwritesFinal),
        (again.iter().any(|case| refused(*case)), Finding::RefusesDuplicates),
        (refused(Case::Parallel), Finding::FailsInParallel),
        (Case::ALL.iter().any(|case| counted(*case)), Finding::FulfilsTwice),
        (of(Case::OtherAmount).is_some_and(unpaid), Finding::IgnoresAmount),
        (refused(Case::OtherAmount), Finding::RefusesOtherAmount),
        (refused(Case::OddFormat) && diagnosed.is_empty(), Finding::RefusesOddFormat),
        (refused(Case::UnknownOrder), Finding::RefusesUnknownOrder),
        (acted(Case::UnknownOrder), Finding::MakesUpOrders),
        (unknown.iter().any(|case| refused(*case)), Finding::RefusesUnknownEvent),
        (unknown.iter().any(|case| acted(*case)), Finding::ActsOnUnknownEvent),
        (nonsense.is_some_and(|row| !row.was_taken()), Finding::BreaksOnNonsense),
        (nonsense.is_some_and(Row::was_taken), Finding::SwallowsNonsense),
        (of(Case::InTime).is_some_and(|row| row.faults.iter().any(slow)), Finding::Slow),
    ]
    .into_iter()
    .filter_map(|(is_so, finding)| is_so.then_some(finding))
    .collect()
}
