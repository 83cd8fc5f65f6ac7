//! The page itself: everything a template prints, ready to print.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;
use url::Url;

use super::assets::{css_url, js_url};
use super::payment::payment;
use super::screen::{Screen, is_expired_code, screen, version};
use super::session::Session;
use super::texts::Texts;
use super::visit::Visit;
use crate::app::App;
use crate::domain::{
    AttemptState, Dossier, Environment, Instrument, PUSH_WINDOW, PayRefusal, PaymentAttempt,
    PaymentMethod, Reason, Status, TRIES_PER_METHOD_MAX,
};
use crate::http::{luanda_time, money, origin_of, own_origin, page_response, protect, qr};

#[derive(Template)]
#[template(path = "checkout/page.html")]
struct Page<'a> {
    lang: &'static str,
    theme: &'static str,
    t: &'static Texts,
    test: bool,
    merchant: &'a str,
    label: &'a str,
    /// At the head of the page, unless the merchant wants it without.
    amount: String,
    /// What a payer types at an ATM, and what the button says: whoever pays sees how much.
    amount_due: String,
    amount_digits: String,
    pay_text: String,
    own_text: String,
    css_url: String,
    js_url: String,
    session: String,
    page_url: String,
    pay_url: String,
    cancel_url: String,
    status_url: String,
    left_url: String,
    screen: &'static str,
    version: String,
    methods: Vec<MethodView>,
    other_url: String,
    /// Where the same method begins again, unless a form is all it takes: then that is its code.
    retry_url: String,
    retry_method: &'static str,
    can_cancel: bool,
    /// The payer has asked for it, and a payment in progress may still win.
    cancelling: bool,
    /// The page had been open for too long when the payer pressed.
    stale: bool,
    /// Money came that is not the amount, and waits for a person.
    held: bool,
    /// A reference that can be paid beside what this screen offers.
    unpaid_reference: String,
    phone_value: &'a str,
    phone_error: bool,
    phone_masked: &'a str,
    seconds_left: String,
    wait_left_now: String,
    reason: String,
    /// Nobody refused anything: the time of a code has passed.
    is_expired_code: bool,
    /// The rail said no: nobody need wonder where the money is.
    is_refused: bool,
    entity: &'a str,
    reference_spaced: String,
    reference_digits: &'a str,
    valid_until: String,
    qr: String,
    code: &'a str,
    link: String,
    paid_at: String,
    method_label: String,
    reference_number: &'a str,
    external_id: &'a str,
    ended_text: &'static str,
    continue_url: String,
    /// Nothing is left to do here, but it is not over.
    may_leave: bool,
    merchant_origin: String,
    nonce: &'a str,
    payment_json: String,
}

struct MethodView {
    code: &'static str,
    label: String,
    hint: &'static str,
    /// A screen to go to first; empty where a click is all it takes.
    href: String,
}

/// What the payer typed and why it was not taken.
#[derive(Default)]
pub(super) struct Typed<'a> {
    pub phone: &'a str,
    pub phone_error: bool,
    /// Nothing was done with it: the page was too old.
    pub stale: bool,
}

/// The page of this order as it is now.
pub(super) fn render(app: &App, visit: &Visit, status: StatusCode, typed: &Typed<'_>) -> Response {
    let now = app.clock.now();
    let choices = choices(app, visit, now);
    let wanted = if typed.phone_error { "phone" } else { wanted(visit, &choices) };
    let shown = screen(&visit.dossier, wanted, now);
    let t = Texts::of(visit.options.language);
    let page = Builder { app, visit, choices, shown, now, t }.page(typed);
    let html = page.render().expect("the template only prints strings");
    let mut response = page_response(status, html, &visit.headers);
    let merchant = origin_of(&visit.dossier.order.terms.additional_info.return_url());
    protect(response.headers_mut(), merchant.as_deref());
    response
}

/// What can be chosen: allowed by the merchant, offered by a rail for this amount, and not tried too often.
fn choices(app: &App, visit: &Visit, now: Timestamp) -> Vec<PaymentMethod> {
    let amount = visit.dossier.order.terms.amount;
    let may_choose = |method: &PaymentMethod| {
        app.rails.offering(*method, amount).is_some() && visit.dossier.open(*method, now).is_ok()
    };
    visit.options.methods.iter().copied().filter(may_choose).collect()
}

/// What the address asks for, unless it leads nowhere.
fn wanted<'a>(visit: &'a Visit, choices: &[PaymentMethod]) -> &'a str {
    match visit.options.view.as_str() {
        "phone" if !choices.contains(&PaymentMethod::ExpressWallet) => "choose",
        view => view,
    }
}

/// The screen of this address now.
pub(super) fn screen_of<'a>(app: &App, visit: &'a Visit, now: Timestamp) -> Screen<'a> {
    screen(&visit.dossier, wanted(visit, &choices(app, visit, now)), now)
}

struct Builder<'a> {
    app: &'a App,
    visit: &'a Visit,
    choices: Vec<PaymentMethod>,
    shown: Screen<'a>,
    now: Timestamp,
    t: &'static Texts,
}

impl<'a> Builder<'a> {
    fn page(&self, typed: &Typed<'a>) -> Page<'a> {
        let Visit { dossier, application, options, .. } = self.visit;
        let (order, language) = (&dossier.order, options.language);
        let reference = order.reference_number.as_str();
        let amount_due = money(order.terms.amount, language);
        let attempt = self.attempt();
        let bank = attempt.and_then(|attempt| match &attempt.instrument {
            Instrument::Reference(bank) => bank.as_ref(),
            Instrument::Push { .. } | Instrument::Code(_) => None,
        });
        let code = attempt.and_then(|attempt| match &attempt.instrument {
            Instrument::Code(code) => code.as_ref(),
            Instrument::Push { .. } | Instrument::Reference(_) => None,
        });
        let link = code.map_or_else(String::new, |code| self.absolute(&code.link));
        let left = attempt.map(|attempt| attempt.deadline.duration_since(self.now));
        let seconds_left = left.map_or(0, |left| left.as_secs().clamp(0, PUSH_WINDOW.as_secs()));
        let session = Session::open(
            order.reference_number.clone(),
            options.methods.clone(),
            options.reference_life_minutes,
            self.now,
        );
        let t = self.t;
        Page {
            lang: language.code(),
            theme: options.theme.as_str(),
            t,
            test: self.app.environment == Environment::Sandbox,
            merchant: &application.name,
            label: order.terms.name.as_str(),
            pay_text: t.pay.replace("{amount}", &amount_due),
            own_text: self.label(PaymentMethod::Direct),
            amount_digits: order.terms.amount.get().to_string(),
            amount: if options.show_amount { amount_due.clone() } else { String::new() },
            amount_due,
            css_url: css_url(),
            js_url: js_url(),
            session: session.seal(&self.app.keys),
            page_url: self.visit.at("", &options.view),
            // Should the session have run out, the payer is still where the number was typed.
            pay_url: self.visit.at("/pay", if self.shown == Screen::Phone { "phone" } else { "" }),
            cancel_url: self.visit.at("/cancel", ""),
            // What has not ended may become paid, whatever is on the screen.
            status_url: match order.status {
                Status::Pending => self.visit.at("/status", &options.view),
                Status::Confirmed | Status::Cancelled => String::new(),
            },
            left_url: match options.nonce.is_empty() {
                true => String::new(),
                false => self.visit.at("/left", ""),
            },
            screen: self.shown.name(),
            version: version(dossier, self.shown),
            methods: self.methods(),
            other_url: self.other_url(),
            retry_url: self.retry_url(),
            retry_method: self.retry_method(),
            can_cancel: self.can_cancel(),
            cancelling: dossier.cancel_requested.is_some() && order.status == Status::Pending,
            stale: typed.stale,
            held: dossier.is_held(),
            unpaid_reference: self.unpaid_reference(),
            phone_value: typed.phone,
            phone_error: typed.phone_error,
            phone_masked: attempt.map_or("", phone_masked),
            wait_left_now: t.wait_left.replace("{s}", &seconds_left.to_string()),
            seconds_left: seconds_left.to_string(),
            reason: self.reason(),
            is_expired_code: attempt.is_some_and(is_expired_code),
            is_refused: attempt.is_some_and(is_refused),
            entity: bank.map_or("", |bank| bank.entity()),
            reference_spaced: bank.map(|bank| bank.spaced()).unwrap_or_default(),
            reference_digits: bank.map_or("", |bank| bank.number()),
            valid_until: self.valid_until(),
            qr: if link.is_empty() { String::new() } else { qr(&link) },
            code: code.map_or("", |code| &code.code),
            link,
            paid_at: dossier.settled_at.map(|at| luanda_time(at, language)).unwrap_or_default(),
            method_label: self.name_of(paid_method(dossier)),
            reference_number: reference,
            external_id: order.external_transaction_id.as_str(),
            ended_text: self.ended_text(),
            continue_url: self.continue_url(),
            may_leave: matches!(self.shown, Screen::Reference(_) | Screen::Confirming),
            merchant_origin: origin_of(&order.terms.additional_info.return_url())
                .unwrap_or_default(),
            nonce: &options.nonce,
            payment_json: payment(dossier, self.now),
        }
    }

    fn attempt(&self) -> Option<&'a PaymentAttempt> {
        match self.shown {
            Screen::Waiting(attempt)
            | Screen::Refused(attempt)
            | Screen::Reference(attempt)
            | Screen::Code(attempt) => Some(attempt),
            _ => None,
        }
    }

    /// The links of simulated wallets are paths of ours.
    fn absolute(&self, link: &str) -> String {
        match link.strip_prefix('/') {
            None => link.to_owned(),
            Some(_) => {
                let own = own_origin(self.app, &self.visit.headers).unwrap_or_default();
                format!("{own}{link}?lang={}", self.visit.options.language.code())
            }
        }
    }

    fn methods(&self) -> Vec<MethodView> {
        if self.shown != Screen::Choose {
            return Vec::new();
        }
        let view = |method: PaymentMethod| MethodView {
            code: method.code(),
            label: self.label(method),
            hint: match method {
                PaymentMethod::ExpressWallet => self.t.m_express_hint,
                PaymentMethod::BankReference => self.t.m_ref_hint,
                PaymentMethod::Direct => self.t.m_own_hint,
            },
            href: match method {
                PaymentMethod::ExpressWallet => self.visit.at("", "phone"),
                PaymentMethod::BankReference | PaymentMethod::Direct => String::new(),
            },
        };
        self.choices.iter().copied().map(view).collect()
    }

    fn label(&self, method: PaymentMethod) -> String {
        match method {
            PaymentMethod::ExpressWallet => self.app.config.labels.express.clone(),
            PaymentMethod::BankReference => self.t.m_ref.to_owned(),
            PaymentMethod::Direct => {
                self.t.m_own.replace("{wallet}", &self.app.config.labels.wallet)
            }
        }
    }

    /// On a proof, where the label of the button would be a command.
    fn name_of(&self, method: PaymentMethod) -> String {
        match method {
            PaymentMethod::Direct => self.app.config.labels.wallet.clone(),
            PaymentMethod::ExpressWallet | PaymentMethod::BankReference => self.label(method),
        }
    }

    fn other_url(&self) -> String {
        let current = match self.shown {
            Screen::Phone => PaymentMethod::ExpressWallet,
            Screen::Refused(attempt) | Screen::Reference(attempt) | Screen::Code(attempt) => {
                attempt.instrument.method()
            }
            Screen::Down if self.choices.len() > 1 => return self.visit.at("", "choose"),
            _ => return String::new(),
        };
        let others = self.choices.iter().any(|choice| *choice != current);
        if others { self.visit.at("", "choose") } else { String::new() }
    }

    /// The same method once more, with whatever it needs.
    fn retry_url(&self) -> String {
        match self.shown {
            Screen::Refused(_) if self.refused() == Some(PaymentMethod::ExpressWallet) => {
                self.visit.at("", "phone")
            }
            // There is no other; whatever was down may be up again.
            Screen::Down if self.choices.len() == 1 => self.visit.at("", "choose"),
            _ => String::new(),
        }
    }

    fn retry_method(&self) -> &'static str {
        match self.refused() {
            Some(method @ (PaymentMethod::BankReference | PaymentMethod::Direct)) => method.code(),
            Some(PaymentMethod::ExpressWallet) | None => "",
        }
    }

    /// What was refused and can be tried once more.
    fn refused(&self) -> Option<PaymentMethod> {
        let Screen::Refused(attempt) = self.shown else { return None };
        Some(attempt.instrument.method()).filter(|method| self.choices.contains(method))
    }

    /// Why it was refused, or that the method is not offered any more: "try again" would mislead then.
    fn reason(&self) -> String {
        let Screen::Refused(attempt) = self.shown else { return String::new() };
        let method = attempt.instrument.method();
        let opening = self.visit.dossier.open(method, self.now);
        if opening != Err(PayRefusal::TooManyAttempts) {
            return reason(self.t, attempt).to_owned();
        }
        if self.choices.is_empty() {
            return self.t.no_methods.to_owned();
        }
        self.t
            .tried_out
            .replace("{tries}", &TRIES_PER_METHOD_MAX.to_string())
            .replace("{method}", &self.name_of(method))
    }

    fn can_cancel(&self) -> bool {
        let dossier = &self.visit.dossier;
        dossier.order.status == Status::Pending
            && dossier.cancel_requested.is_none()
            && !matches!(self.shown, Screen::Expired | Screen::Confirming)
    }

    fn valid_until(&self) -> String {
        let text = match self.shown {
            Screen::Reference(_) => self.t.valid,
            _ => self.t.valid_code,
        };
        let deadline = self.attempt().map(|attempt| attempt.deadline);
        let date = deadline.map(|at| luanda_time(at, self.visit.options.language));
        text.replace("{date}", &date.unwrap_or_default())
    }

    /// Whoever is about to pay otherwise must not pay it as well.
    fn unpaid_reference(&self) -> String {
        let offers_another = matches!(
            self.shown,
            Screen::Choose
                | Screen::Phone
                | Screen::Waiting(_)
                | Screen::Code(_)
                | Screen::Refused(_)
        );
        let live = self.visit.dossier.live(PaymentMethod::BankReference, self.now);
        match live.filter(|_| offers_another).map(|attempt| &attempt.instrument) {
            Some(Instrument::Reference(Some(bank))) => {
                // One number, on one line.
                let reference = bank.spaced().replace(' ', "\u{a0}");
                self.t.unpaid_reference.replace("{reference}", &reference)
            }
            _ => String::new(),
        }
    }

    /// Only who has a reference is told not to pay it, and who has paid what happens to the money.
    fn ended_text(&self) -> &'static str {
        let Dossier { attempts, order, .. } = &self.visit.dossier;
        let paid = |attempt: &PaymentAttempt| {
            matches!(attempt.state, AttemptState::Held | AttemptState::Accepted)
        };
        let reference =
            |attempt: &PaymentAttempt| attempt.instrument.method() == PaymentMethod::BankReference;
        if attempts.iter().any(paid) {
            self.t.returned_text
        } else if attempts.iter().any(reference) {
            match order.status {
                Status::Pending => self.t.closing_text,
                Status::Confirmed | Status::Cancelled => self.t.expired_text,
            }
        } else {
            self.t.cancelled_text
        }
    }

    /// Back to the shop, which is told what it needs to show its page.
    fn continue_url(&self) -> String {
        let order = &self.visit.dossier.order;
        let info = &order.terms.additional_info;
        let target = match self.shown {
            Screen::Paid | Screen::Reference(_) | Screen::Confirming => info.return_url(),
            Screen::Cancelled | Screen::Expired => info.cancel_url(),
            _ => return String::new(),
        };
        let Ok(mut url) = Url::parse(&target) else { return String::new() };
        {
            let mut query = url.query_pairs_mut();
            query.append_pair("orderId", order.external_transaction_id.as_str());
            query.append_pair("status", order.status.code());
            if let Screen::Reference(attempt) = self.shown
                && let Instrument::Reference(Some(bank)) = &attempt.instrument
            {
                query.append_pair("ref", bank.number()).append_pair("entity", bank.entity());
            }
        }
        url.into()
    }
}

fn phone_masked(attempt: &PaymentAttempt) -> &str {
    match &attempt.instrument {
        Instrument::Push { phone_masked, .. } => phone_masked,
        Instrument::Reference(_) | Instrument::Code(_) => "",
    }
}

fn reason(t: &'static Texts, attempt: &PaymentAttempt) -> &'static str {
    if is_expired_code(attempt) {
        return t.code_unused;
    }
    match &attempt.reason {
        Some(Reason::PayerRefused) => t.refused_payer,
        Some(Reason::InsufficientFunds) => t.funds,
        Some(Reason::Limit) => t.limit,
        Some(Reason::IssuerRefused) => t.refused_bank,
        Some(Reason::Timeout) if attempt.state == AttemptState::TimedOut => t.timeout,
        Some(Reason::Timeout) => t.bank_silent,
        Some(Reason::InvalidPhone | Reason::NotEnrolled) => t.not_enrolled,
        Some(Reason::RailDown | Reason::Config) => t.down_text,
        Some(Reason::Other(_)) | None => t.refused_other,
    }
}

fn is_refused(attempt: &PaymentAttempt) -> bool {
    use Reason::{InsufficientFunds, IssuerRefused, Limit, PayerRefused};
    matches!(attempt.reason, Some(PayerRefused | InsufficientFunds | Limit | IssuerRefused))
}

fn paid_method(dossier: &Dossier) -> PaymentMethod {
    let paid = dossier.attempts.iter().find(|attempt| attempt.state == AttemptState::Accepted);
    paid.map_or(PaymentMethod::Direct, |attempt| attempt.instrument.method())
}
