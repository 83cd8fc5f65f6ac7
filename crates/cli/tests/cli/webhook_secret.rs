//! A new webhook secret takes over while the service runs, and every delivery is signed as promised.

use serde_json::{Value, json};

use crate::support::merchant::Merchant;
use crate::support::receiver::{Received, Receiver, content_token, order, pay};
use crate::support::{PATIENCE, Place, Ran, Service, until};

on_both_engines! {
    from_the_switch_on_the_new_secret_signs,
    a_secret_that_never_took_over_is_told_to_be_dead,
    a_switch_after_the_overlap_is_refused,
}

/// A merchant that has got one event, which can be sent again at will.
struct Stage<'a> {
    place: &'a Place,
    credentials: Value,
    receiver: Receiver,
    event: String,
    _service: Service,
}

impl<'a> Stage<'a> {
    fn set(place: &'a Place) -> Self {
        let receiver = Receiver::start(|_| (200, String::new()));
        let service = place.serve_locally();
        let credentials = place.partner();
        let merchant = Merchant::new(service.base_url(), &credentials);
        let reference = order(&merchant, "order-1", &receiver.url());
        pay(&merchant, "order-1");
        let first = receiver.wait_for(1).remove(0);
        assert_eq!(first.json()["data"]["referenceNumber"], reference);
        let stage = Self {
            event: first.header("webhook-id").to_owned(),
            place,
            credentials,
            receiver,
            _service: service,
        };
        assert_eq!(token(&first), content_token(&stage.old_secret(), &first.body));
        stage
    }

    fn old_secret(&self) -> String {
        self.credentials["webhookSecret"].as_str().expect("a secret is text").to_owned()
    }

    fn rotate(&self, switch_after: &str, overlap: &str) -> Ran {
        let key = self.credentials["publishableKey"].as_str().expect("a key is text");
        let takeover = ["--switch-after", switch_after, "--overlap", overlap, "--json"];
        let command = ["application", "rotate-webhook-secret", key];
        self.place.svc(&[command.as_slice(), &takeover].concat())
    }

    fn new_secret(&self, switch_after: &str, overlap: &str) -> String {
        let rotated = self.rotate(switch_after, overlap).json();
        let secret = rotated["webhookSecret"].as_str().expect("a secret is text").to_owned();
        assert_ne!(secret, self.old_secret());
        secret
    }

    /// Has the event sent again and again until one delivery is as wanted.
    fn until_delivered(&self, wanted: impl Fn(&Received) -> bool) -> Received {
        until("a delivery is as wanted", PATIENCE, || {
            let before = self.receiver.received().len();
            let replayed = self.place.svc(&["webhook", "replay", &self.event, "--json"]);
            assert_eq!(replayed.json(), json!({ "replayed": 1 }));
            self.receiver.wait_for(before + 1).pop().filter(&wanted)
        })
    }
}

fn token(received: &Received) -> &str {
    received.header("x-svc-content-token")
}

fn standard_signatures(received: &Received) -> usize {
    received.header("webhook-signature").split(' ').count()
}

fn from_the_switch_on_the_new_secret_signs(place: &Place) {
    let stage = Stage::set(place);
    let (old, new) = (stage.old_secret(), stage.new_secret("2s", "24h"));
    let by = |secret: &str, one: &Received| token(one) == content_token(secret, &one.body);
    let received = stage.until_delivered(|received| by(&new, received));
    assert_eq!(standard_signatures(&received), 2, "the overlap has not ended");
    // On the way there: the old one's, and never again once the new one's had come.
    let all = stage.receiver.received();
    assert!(all.iter().all(|one| by(&old, one) || by(&new, one)), "of neither secret: {all:?}");
    assert!(all.iter().is_sorted_by_key(|one| by(&new, one)), "old after new: {all:?}");
}

fn a_secret_that_never_took_over_is_told_to_be_dead(place: &Place) {
    const SKIPPED: &str = "never will: forget it";
    let stage = Stage::set(place);
    let first = stage.rotate("1h", "24h");
    assert!(!first.stderr.contains(SKIPPED), "{first:?}");
    let second = stage.rotate("1h", "24h");
    assert!(second.stderr.contains(SKIPPED), "{second:?}");
    // It is still the one that the merchant has.
    let received = stage.until_delivered(|_| true);
    assert_eq!(token(&received), content_token(&stage.old_secret(), &received.body));
}

fn a_switch_after_the_overlap_is_refused(place: &Place) {
    let stage = Stage::set(place);
    stage.rotate("2h", "1h").refused("choose a longer overlap");
    stage.rotate("0s", "9999w").refused("up to 400 days");
    let received = stage.until_delivered(|_| true);
    assert_eq!(token(&received), content_token(&stage.old_secret(), &received.body));
}
