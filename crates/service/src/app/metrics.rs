//! What the service counts; names in base units, few label values.

use std::time::Duration;

use jiff::Timestamp;
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Label, Level, Metadata, Recorder};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusRecorder};

use crate::domain::{Failure, Status};
use crate::store::{Attention, Received};

pub struct Metrics {
    recorder: PrometheusRecorder,
    routes: [RouteMetrics; ROUTES.len()],
    transitions: [Counter; 2],
    rail_notices: [Counter; Received::OUTCOMES.len()],
    pub batch_size: Histogram,
    pub orders_created: Counter,
    pub orders_replayed: Counter,
    pub tokens_issued: Counter,
    pub token_failures: Counter,
    pub connections_refused: Counter,
    pub policy_reports: Counter,
    outbox_depth: Gauge,
    outbox_oldest_age: Gauge,
    webhooks_exhausted: Gauge,
    exceptions_open: Gauge,
    payments_unanswered: Gauge,
    pub clock_leap: Gauge,
    pub clock_off: Gauge,
    webhooks_delivered: Counter,
    webhook_failures: [Counter; Failure::ALL.len()],
    webhook_durations: Histogram,
    pub webhook_first_attempt_lag: Histogram,
    pub webhooks_in_flight: Gauge,
    pub webhook_breakers_open: Gauge,
}

/// The routes by which requests are counted; whatever else is asked for is the last one.
pub const ROUTES: [&str; 18] = [
    "/svcpartner/createPaymentOrder",
    "/svcpartner/paymentByExternalTransaction",
    "/token",
    "/svcpartner/events",
    "/sandbox/simulate",
    "/sandbox/clock",
    "/sandbox/chaos",
    "/checkout",
    "/sdks",
    "/rails",
    "/sandbox",
    "/console",
    "/livez",
    "/readyz",
    "/metrics",
    "/openapi.json",
    "/docs",
    "other",
];

/// The first so many are the calls of partners.
pub const PARTNER_ROUTES: usize = 7;

/// Looked up once: a request must not pay for finding its counters by name.
struct RouteMetrics {
    answers: [Counter; CLASSES.len()],
    durations: Histogram,
}

const CLASSES: [&str; 4] = ["2xx", "3xx", "4xx", "5xx"];

const SECONDS: [f64; 11] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0];
const SIZES: [f64; 12] =
    [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1_024.0, 2_048.0];

const META: Metadata<'static> = Metadata::new("svc", Level::INFO, None);

impl Metrics {
    pub fn new() -> Self {
        let recorder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".into()), &SECONDS)
            .and_then(|b| b.set_buckets_for_metric(Matcher::Suffix("_batch_size".into()), &SIZES))
            .expect("the buckets are not empty")
            .build_recorder();
        describe(&recorder);
        let counter =
            |name: &'static str| recorder.register_counter(&Key::from_static_name(name), &META);
        let gauge =
            |name: &'static str| recorder.register_gauge(&Key::from_static_name(name), &META);
        let histogram =
            |name: &'static str| recorder.register_histogram(&Key::from_static_name(name), &META);
        let webhook_attempts = |outcome: &'static str| {
            let labels = vec![Label::from_static_parts("outcome", outcome)];
            let key = Key::from_parts("svc_webhook_attempts_total", labels);
            recorder.register_counter(&key, &META)
        };
        Self {
            routes: ROUTES.map(|route| route_metrics(&recorder, route)),
            batch_size: histogram("svc_store_batch_size"),
            orders_created: counter("svc_orders_created_total"),
            orders_replayed: counter("svc_orders_replayed_total"),
            tokens_issued: counter("svc_tokens_issued_total"),
            token_failures: counter("svc_token_failures_total"),
            connections_refused: counter("svc_connections_refused_total"),
            policy_reports: counter("svc_policy_reports_total"),
            outbox_depth: gauge("svc_outbox_depth"),
            transitions: [Status::Confirmed, Status::Cancelled].map(|to| {
                let labels = vec![Label::from_static_parts("to", to.code())];
                let key = Key::from_parts("svc_order_transitions_total", labels);
                recorder.register_counter(&key, &META)
            }),
            rail_notices: Received::OUTCOMES.map(|outcome| {
                let labels = vec![Label::from_static_parts("outcome", outcome)];
                let key = Key::from_parts("svc_rail_notices_total", labels);
                recorder.register_counter(&key, &META)
            }),
            outbox_oldest_age: gauge("svc_outbox_oldest_age_seconds"),
            webhooks_exhausted: gauge("svc_webhooks_exhausted"),
            exceptions_open: gauge("svc_exceptions_open"),
            payments_unanswered: gauge("svc_payments_unanswered"),
            clock_leap: gauge("svc_clock_leap_seconds"),
            clock_off: gauge("svc_clock_off_seconds"),
            webhooks_delivered: webhook_attempts("delivered"),
            webhook_failures: Failure::ALL.map(|failure| webhook_attempts(failure.as_str())),
            webhook_durations: histogram("svc_webhook_attempt_duration_seconds"),
            webhook_first_attempt_lag: histogram("svc_webhook_first_attempt_lag_seconds"),
            webhooks_in_flight: gauge("svc_webhooks_in_flight"),
            webhook_breakers_open: gauge("svc_webhook_breakers_open"),
            recorder,
        }
    }

    /// Whether this rail answers.
    pub fn rail_up(&self, rail: &str) -> Gauge {
        let key = Key::from_parts("svc_rail_up", vec![Label::new("rail", rail.to_owned())]);
        self.recorder.register_gauge(&key, &META)
    }

    /// What the database says needs somebody.
    pub fn attention(&self, needs: &Attention, now: Timestamp) {
        let age_ms = needs.oldest_waiting_at_ms.map_or(0, |at| now.as_millisecond() - at);
        self.outbox_depth.set(needs.waiting_events as f64);
        self.outbox_oldest_age.set(age_ms.max(0) as f64 / 1_000.0);
        self.webhooks_exhausted.set(needs.exhausted_events as f64);
        self.exceptions_open.set(needs.open_exceptions as f64);
        self.payments_unanswered.set(needs.unanswered as f64);
    }

    /// One answered request; `route` is a place in `ROUTES`.
    pub fn request(&self, route: usize, status: u16, took: Duration) {
        let class = match status {
            200..300 => 0,
            300..400 => 1,
            400..500 => 2,
            _ => 3,
        };
        let route = &self.routes[route];
        route.answers[class].increment(1);
        route.durations.record(took.as_secs_f64());
    }

    /// One order that left `PEN`.
    pub fn transition(&self, to: Status) {
        match to {
            Status::Confirmed => self.transitions[0].increment(1),
            Status::Cancelled => self.transitions[1].increment(1),
            Status::Pending => {}
        }
    }

    /// One notice of a rail.
    pub fn rail_notice(&self, received: Received) {
        let place = Received::OUTCOMES.iter().position(|known| *known == received.outcome());
        self.rail_notices[place.expect("one of the three")].increment(1);
    }

    /// One attempt to deliver a webhook.
    pub fn webhook_attempt(&self, failure: Option<Failure>, took: Duration) {
        let counted = Failure::ALL.iter().zip(&self.webhook_failures);
        let counter = match failure {
            None => Some(&self.webhooks_delivered),
            Some(failure) => counted.into_iter().find(|(one, _)| **one == failure).map(|(_, c)| c),
        };
        counter.expect("every failure is counted").increment(1);
        self.webhook_durations.record(took.as_secs_f64());
    }

    pub fn render(&self) -> String {
        self.recorder.handle().render()
    }

    /// Folds recorded samples into their buckets; without it they would pile up between scrapes.
    pub fn fold(&self) {
        self.recorder.handle().run_upkeep();
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

fn route_metrics(recorder: &PrometheusRecorder, route: &'static str) -> RouteMetrics {
    let route = Label::from_static_parts("route", route);
    let answers = CLASSES.map(|class| {
        let labels = vec![route.clone(), Label::from_static_parts("status", class)];
        recorder.register_counter(&Key::from_parts("svc_http_requests_total", labels), &META)
    });
    let key = Key::from_parts("svc_http_request_duration_seconds", vec![route]);
    RouteMetrics { answers, durations: recorder.register_histogram(&key, &META) }
}

fn describe(recorder: &PrometheusRecorder) {
    let name = KeyName::from_const_str;
    let counters = [
        ("svc_http_requests_total", "Requests answered, by route and class of status."),
        ("svc_orders_created_total", "Orders stored."),
        ("svc_orders_replayed_total", "Creations that found their order already there."),
        ("svc_order_transitions_total", "Orders settled, by new status."),
        ("svc_rail_notices_total", "Notices of rails, by what became of them."),
        ("svc_tokens_issued_total", "Access tokens issued."),
        ("svc_token_failures_total", "Token requests with wrong credentials."),
        ("svc_connections_refused_total", "Connections of addresses that had too many."),
        ("svc_policy_reports_total", "Things that browsers say they refused on our pages."),
        ("svc_webhook_attempts_total", "Attempts to deliver a webhook, by how they ended."),
    ];
    for (counter, text) in counters {
        recorder.describe_counter(name(counter), None, text.into());
    }
    let histograms = [
        ("svc_http_request_duration_seconds", "Time from request head to answer."),
        ("svc_store_batch_size", "Writes committed together."),
        ("svc_webhook_attempt_duration_seconds", "Time an attempt to deliver a webhook took."),
        (
            "svc_webhook_first_attempt_lag_seconds",
            "From the commit of an event to its first attempt.",
        ),
    ];
    for (histogram, text) in histograms {
        recorder.describe_histogram(name(histogram), None, text.into());
    }
    let gauges = [
        ("svc_outbox_depth", "Events waiting for delivery."),
        ("svc_outbox_oldest_age_seconds", "Age of the oldest event waiting for delivery."),
        ("svc_webhooks_exhausted", "Events that were given up and wait to be replayed."),
        ("svc_exceptions_open", "Money that fits no order and waits for an operator."),
        ("svc_payments_unanswered", "Payments whose rail keeps silent, for an operator to answer."),
        (
            "svc_clock_leap_seconds",
            "How far the machine's clock has leapt from the time that the service goes by.",
        ),
        ("svc_clock_off_seconds", "How far this node's clock is ahead of the database server's."),
        ("svc_rail_up", "1 if a connector answered when it was last asked what it can do, else 0."),
        ("svc_webhooks_in_flight", "Webhooks being sent."),
        ("svc_webhook_breakers_open", "Destinations that do not answer and only get probes."),
    ];
    for (gauge, text) in gauges {
        recorder.describe_gauge(name(gauge), None, text.into());
    }
}
