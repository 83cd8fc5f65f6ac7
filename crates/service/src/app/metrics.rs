//! What the service counts; names in base units, few label values.

use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Label, Level, Metadata, Recorder};
use metrics_exporter_prometheus::{
    Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder,
};

pub struct Metrics {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
    pub batch_size: Histogram,
    pub orders_created: Counter,
    pub orders_replayed: Counter,
    pub tokens_issued: Counter,
    pub token_failures: Counter,
    pub outbox_depth: Gauge,
    pub outbox_oldest_age: Gauge,
}

const SECONDS: [f64; 11] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0];
const SIZES: [f64; 10] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];

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
        Self {
            handle: recorder.handle(),
            batch_size: recorder
                .register_histogram(&Key::from_static_name("svc_store_batch_size"), &META),
            orders_created: counter("svc_orders_created_total"),
            orders_replayed: counter("svc_orders_replayed_total"),
            tokens_issued: counter("svc_tokens_issued_total"),
            token_failures: counter("svc_token_failures_total"),
            outbox_depth: gauge("svc_outbox_depth"),
            outbox_oldest_age: gauge("svc_outbox_oldest_age_seconds"),
            recorder,
        }
    }

    /// One answered request; `route` comes from a fixed list.
    pub fn request(&self, route: &'static str, status: u16, took: Duration) {
        let status = match status {
            200..300 => "2xx",
            300..400 => "3xx",
            400..500 => "4xx",
            _ => "5xx",
        };
        let labels = vec![
            Label::from_static_parts("route", route),
            Label::from_static_parts("status", status),
        ];
        let requests = Key::from_parts("svc_http_requests_total", labels);
        self.recorder.register_counter(&requests, &META).increment(1);
        let durations = Key::from_parts(
            "svc_http_request_duration_seconds",
            vec![Label::from_static_parts("route", route)],
        );
        self.recorder.register_histogram(&durations, &META).record(took.as_secs_f64());
    }

    /// One order that left `PEN`.
    pub fn transition(&self, to: &'static str) {
        let key = Key::from_parts(
            "svc_order_transitions_total",
            vec![Label::from_static_parts("to", to)],
        );
        self.recorder.register_counter(&key, &META).increment(1);
    }

    pub fn render(&self) -> String {
        self.handle.render()
    }

    /// Folds recorded samples into their buckets; without it they would pile up between scrapes.
    pub fn fold(&self) {
        self.handle.run_upkeep();
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

fn describe(recorder: &PrometheusRecorder) {
    let name = KeyName::from_const_str;
    let counters = [
        ("svc_http_requests_total", "Requests answered, by route and class of status."),
        ("svc_orders_created_total", "Orders stored."),
        ("svc_orders_replayed_total", "Creations that found their order already there."),
        ("svc_order_transitions_total", "Orders settled, by new status."),
        ("svc_tokens_issued_total", "Access tokens issued."),
        ("svc_token_failures_total", "Token requests with wrong credentials."),
    ];
    for (counter, text) in counters {
        recorder.describe_counter(name(counter), None, text.into());
    }
    let histograms = [
        ("svc_http_request_duration_seconds", "Time from request head to answer."),
        ("svc_store_batch_size", "Writes committed together."),
    ];
    for (histogram, text) in histograms {
        recorder.describe_histogram(name(histogram), None, text.into());
    }
    let gauges = [
        ("svc_outbox_depth", "Events waiting for delivery."),
        ("svc_outbox_oldest_age_seconds", "Age of the oldest event waiting for delivery."),
    ];
    for (gauge, text) in gauges {
        recorder.describe_gauge(name(gauge), None, text.into());
    }
}
