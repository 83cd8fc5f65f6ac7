//! The stories of a month: who buys what, how it is paid, and what goes wrong. Pure: the same number
//! tells the same stories.

use jiff::SignedDuration;
use svc_service::orders::Resolution;

use super::dice::Dice;
use super::shops::SHOPS;

pub(super) const DAYS: i64 = 30;
const DAY_S: i64 = 86_400;
/// Nothing begins so shortly before the end that it would still be under way.
const QUIET_S: i64 = 1_800;
/// When people buy: by hour of the day in Luanda, an hour ahead of UTC.
const HOURS: [i64; 24] =
    [2, 1, 1, 1, 1, 2, 4, 7, 10, 12, 13, 13, 14, 12, 11, 11, 12, 13, 14, 15, 14, 11, 7, 4];
/// The sandbox does something of its own with these amounts.
const MAGIC: std::ops::RangeInclusive<i64> = 9_001..=9_199;

/// One order and all that happens to it.
#[derive(Debug)]
pub(super) struct Story {
    pub shop: usize,
    pub external_transaction_id: String,
    pub payer: String,
    pub name: &'static str,
    pub quantity: i64,
    pub amount: i64,
    /// Counted from the beginning of the month.
    pub begins: SignedDuration,
    /// Counted from the beginning of the story, in order.
    pub acts: Vec<(SignedDuration, Act)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Push {
        phone: String,
    },
    Reference {
        life: SignedDuration,
    },
    Code,
    /// Money comes for the last instrument: so many kwanza more or less than asked for.
    Money {
        off: i64,
    },
    /// And once more.
    MoneyAgain,
    PayerRefuses,
    PayerCancels,
    OperatorCancels,
    OperatorResolves(Resolution),
}

/// What kind of story, and how many in a hundred are of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    PushPaid,
    PushRefusedThenPaid,
    PushTakenBack,
    ReferencePaid,
    ReferencePending,
    ReferenceExpired,
    LateMoney,
    MismatchResolved,
    MismatchOpen,
    PaidTwice,
    CodePaid,
    CodeRefused,
    GaveUp,
    NeverChosen,
    OperatorCancelled,
}

const KINDS: [(Kind, i64); 15] = [
    (Kind::PushPaid, 34),
    (Kind::PushRefusedThenPaid, 8),
    (Kind::PushTakenBack, 1),
    (Kind::ReferencePaid, 19),
    (Kind::ReferencePending, 7),
    (Kind::ReferenceExpired, 7),
    (Kind::LateMoney, 2),
    (Kind::MismatchResolved, 1),
    (Kind::MismatchOpen, 1),
    (Kind::PaidTwice, 1),
    (Kind::CodePaid, 7),
    (Kind::CodeRefused, 2),
    (Kind::GaveUp, 5),
    (Kind::NeverChosen, 3),
    (Kind::OperatorCancelled, 2),
];

/// So many stories. The first of each kind is told whatever the dice say, so that a small sandbox has
/// them all.
pub(super) fn stories(count: usize, number: u64) -> Vec<Story> {
    let mut dice = Dice::new(number);
    let weights = KINDS.map(|(_, weight)| weight);
    (0..count)
        .map(|index| {
            let drawn = dice.weighted(&weights);
            let (kind, _) = KINDS[if index < KINDS.len() { index } else { drawn }];
            story(kind, &mut dice)
        })
        .collect()
}

fn story(kind: Kind, dice: &mut Dice) -> Story {
    let shop = dice.weighted(&[3, 5, 3, 2, 3, 4]);
    let (name, price) = *dice.pick(SHOPS[shop].products);
    let quantity = dice.between(1, 4);
    let mut amount = price * quantity;
    if MAGIC.contains(&amount) {
        amount += 300;
    }
    Story {
        shop,
        external_transaction_id: format!("order_{}", dice.uuid()),
        payer: format!("cliente-{}", dice.between(1_000, 1_400)),
        name,
        quantity,
        amount,
        begins: begins(kind, dice),
        acts: acts(kind, amount, dice),
    }
}

fn begins(kind: Kind, dice: &mut Dice) -> SignedDuration {
    let end = DAYS * DAY_S;
    let at = match kind {
        // The engine looks at an order that is held every five minutes: not for weeks.
        Kind::MismatchOpen => dice.between(end - 40 * 3_600, end - 20 * 3_600),
        // Its reference is still good at the end.
        Kind::ReferencePending => dice.between(end - 20 * 3_600, end - QUIET_S),
        // Time for the operator to look at it, or for it to expire.
        Kind::MismatchResolved | Kind::LateMoney | Kind::ReferenceExpired => {
            dice.between(0, end - 4 * DAY_S)
        }
        _ => {
            let hour = i64::try_from(dice.weighted(&HOURS)).expect("less than 24") - 1;
            let at = dice.between(0, DAYS) * DAY_S + hour * 3_600 + dice.between(0, 3_600);
            at.clamp(0, end - QUIET_S - dice.between(0, 7_200))
        }
    };
    SignedDuration::from_secs(at)
}

fn acts(kind: Kind, amount: i64, dice: &mut Dice) -> Vec<(SignedDuration, Act)> {
    let s = SignedDuration::from_secs;
    let chosen = dice.between(8, 90);
    let day = Act::Reference { life: SignedDuration::from_hours(24) };
    let push = |phone: String| Act::Push { phone };
    let mut told = match kind {
        Kind::PushPaid => vec![(chosen, push(phone(dice)))],
        Kind::PushRefusedThenPaid => {
            let magic = *dice.pick(&["900002001", "900002002", "900002003", "900003000"]);
            let again = chosen + dice.between(20, 200);
            vec![(chosen, push(magic.to_owned())), (again, push(phone(dice)))]
        }
        Kind::PushTakenBack => vec![(chosen, push("900000008".to_owned()))],
        Kind::ReferencePaid => {
            vec![(chosen, day), (chosen + dice.between(600, 80_000), Act::Money { off: 0 })]
        }
        Kind::ReferencePending => {
            let days = dice.between(1, 4);
            vec![(chosen, Act::Reference { life: SignedDuration::from_hours(24 * days) })]
        }
        Kind::ReferenceExpired => vec![(chosen, day)],
        Kind::LateMoney => {
            let late = chosen + dice.between(87_000, 170_000);
            let mut told = vec![(chosen, day), (late, Act::Money { off: 0 })];
            told.extend(sent_back(late, dice));
            told
        }
        Kind::MismatchResolved => {
            let how = *dice.pick(&[Resolution::Accept, Resolution::Refund]);
            mismatch(chosen, day, amount, Some(how), dice)
        }
        Kind::MismatchOpen => mismatch(chosen, day, amount, None, dice),
        Kind::PaidTwice => {
            let paid = chosen + dice.between(600, 40_000);
            let again = paid + dice.between(60, 3_000);
            let mut told =
                vec![(chosen, day), (paid, Act::Money { off: 0 }), (again, Act::MoneyAgain)];
            told.extend(sent_back(again, dice));
            told
        }
        Kind::CodePaid => {
            vec![(chosen, Act::Code), (chosen + dice.between(20, 800), Act::Money { off: 0 })]
        }
        Kind::CodeRefused => {
            let refused = chosen + dice.between(20, 300);
            let gone = refused + dice.between(10, 60);
            vec![(chosen, Act::Code), (refused, Act::PayerRefuses), (gone, Act::PayerCancels)]
        }
        Kind::GaveUp => vec![(chosen, Act::PayerCancels)],
        Kind::NeverChosen => Vec::new(),
        Kind::OperatorCancelled => {
            vec![(chosen, day), (chosen + dice.between(900, 30_000), Act::OperatorCancels)]
        }
    };
    told.sort_by_key(|(at, _)| *at);
    told.into_iter().map(|(at, act)| (s(at), act)).collect()
}

/// Not the amount that was asked for: an operator decides, sooner or later.
fn mismatch(
    chosen: i64,
    day: Act,
    amount: i64,
    resolution: Option<Resolution>,
    dice: &mut Dice,
) -> Vec<(i64, Act)> {
    let paid = chosen + dice.between(600, 60_000);
    let off = *dice.pick(&[-500, -100, 100, 1_000]);
    let mut told = vec![(chosen, day), (paid, Act::Money { off: off.max(1 - amount) })];
    let seen = paid + dice.between(3_600, 20_000);
    told.extend(resolution.map(|resolution| (seen, Act::OperatorResolves(resolution))));
    told
}

/// In two of three cases an operator has sent the money back by now.
fn sent_back(came: i64, dice: &mut Dice) -> Option<(i64, Act)> {
    let seen = came + dice.between(3_600, 40_000);
    (dice.between(0, 3) > 0).then_some((seen, Act::OperatorResolves(Resolution::Refund)))
}

/// Of the networks there are; none that the sandbox plays tricks with.
fn phone(dice: &mut Dice) -> String {
    let network = *dice.pick(&["91", "92", "93", "94", "95", "99"]);
    format!("{network}{}", dice.between(1_000_000, 10_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_number_tells_the_same_stories() {
        let told = |number| format!("{:?}", stories(200, number));
        assert_eq!(told(1), told(1));
        assert_ne!(told(1), told(2));
    }

    #[test]
    fn every_story_is_within_the_month_and_none_is_magic() {
        for story in stories(2_000, 3) {
            assert!(story.begins >= SignedDuration::ZERO);
            assert!(story.begins <= SignedDuration::from_secs(DAYS * DAY_S - QUIET_S));
            assert!(!MAGIC.contains(&story.amount), "{}", story.amount);
            assert!(story.acts.is_sorted_by_key(|(at, _)| *at));
        }
    }

    #[test]
    fn a_small_sandbox_has_every_kind() {
        let all = stories(KINDS.len(), 5);
        assert!(all.iter().any(|story| story.acts.is_empty()), "one nobody chose to pay");
        let any = |wanted: fn(&Act) -> bool| {
            all.iter().flat_map(|story| &story.acts).any(|(_, act)| wanted(act))
        };
        assert!(any(|act| matches!(act, Act::Money { off } if *off != 0)));
        assert!(any(|act| *act == Act::MoneyAgain) && any(|act| *act == Act::OperatorCancels));
    }
}
