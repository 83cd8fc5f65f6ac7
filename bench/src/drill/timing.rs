//! Does the time of a refusal tell which secret or signature is nearly right, or which id exists?

use std::time::Instant;

use anyhow::Context;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use svc_service::app::Clock;
use svc_service::domain::sign_standard;

use super::{Ledger, Setting};
use crate::Engine;
use crate::partner::Partner;
use crate::process::{Data, Server, own_directory, svc};

/// Welch's t above this says the two differ (goal G19).
const T_MAX: f64 = 4.5;
/// The slowest share of the samples is the machine's business, not the service's.
const KEPT_SHARE: f64 = 0.9;
const RAIL: &str = "acquirer";
/// As `svc keygen --rail` makes them.
const RAIL_SECRET: &str = "whsec_c3ZjLWJlbmNoLXRpbWluZy1kcmlsbC0zMi1ieXRlcyE=";

/// A call that is refused, and why.
type Refused = (&'static str, Request<Full<Bytes>>);

pub(super) async fn run(setting: &Setting) -> anyhow::Result<Ledger> {
    let samples = setting.either(1_000, 20_000);
    let mut ledger = Ledger::new(format!("Timing: {samples} samples of each refusal"));
    let data = Data::fresh(Engine::Sqlite, "timing").await?;
    let known = Partner::create(&data).await?;
    let disabled = Partner::create(&data).await?;
    let disable = ["partner", "disable", disabled.client_id(), "--json", "--database", &data.url];
    svc(&disable).await?;
    let settings = own_directory()?.join(format!("timing-{}.toml", std::process::id()));
    // Nobody is asked for anything: the rail only tells.
    let rail = format!(
        "[[rail]]\nname = {RAIL:?}\nurl = \"http://127.0.0.1:9\"\nsecret = {RAIL_SECRET:?}\n"
    );
    std::fs::write(&settings, rail)?;
    let config = settings.to_str().context("a path")?;
    let more = ["--token-failures-per-minute", "10000000", "--address-failures-per-minute"];
    let server =
        Server::serve(&data, &[&more[..], &["10000000", "--config", config]].concat()).await;
    std::fs::remove_file(&settings)?;
    let server = server?;
    let address = &server.target.address;
    for (what, cases) in [
        ("/token", credentials(address, &known, &disabled)?),
        ("a rail's notice", signatures(address)?),
    ] {
        for (name, t) in compare(&cases, samples).await? {
            let figure = format!("t = {t:.1} (< {T_MAX})");
            ledger.promise(&format!("{what}: {} against {name}", cases[0].0), figure, t < T_MAX);
        }
    }
    Ok(ledger)
}

fn credentials(address: &str, known: &Partner, disabled: &Partner) -> anyhow::Result<Vec<Refused>> {
    let right = known.secret();
    let wrong_at = |place: usize| with_another(right, place);
    let cases = [
        ("wrong from the first character", known.client_id(), wrong_at(right.len() - 40)),
        ("wrong at the last character", known.client_id(), wrong_at(right.len() - 1)),
        ("an unknown id", "partner_that_nobody_knows_00000000", right.to_owned()),
        ("a disabled partner", disabled.client_id(), disabled.secret().to_owned()),
    ];
    let asked = cases.map(|(name, id, secret)| {
        let basic = format!("Basic {}", STANDARD.encode(format!("{id}:{secret}")));
        let request = Request::post(format!("http://{address}/token"))
            .header("authorization", basic)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(Full::from("grant_type=client_credentials"))?;
        Ok((name, request))
    });
    asked.into_iter().collect()
}

fn signatures(address: &str) -> anyhow::Result<Vec<Refused>> {
    const ID: &str = "msg_1";
    const BODY: &str =
        r#"{"kind":"payment","railPaymentId":"p1","attemptId":"att_1","amount":"1.00"}"#;
    let now = Clock::system().now();
    let signed = sign_standard(RAIL_SECRET, ID, now, BODY.as_bytes()).context("a secret")?;
    let first = signed.find(',').context("a signature")? + 1;
    // The last character in which all bits count: padding follows it.
    let cases = [("wrong at the first byte", first), ("wrong at the last byte", signed.len() - 3)];
    let asked = cases.map(|(name, place)| {
        let request = Request::post(format!("http://{address}/rails/{RAIL}/notify"))
            .header("content-type", "application/json")
            .header("webhook-id", ID)
            .header("webhook-timestamp", now.as_second())
            .header("webhook-signature", with_another(&signed, place))
            .body(Full::from(BODY))?;
        Ok((name, request))
    });
    asked.into_iter().collect()
}

/// With another character at this place.
fn with_another(text: &str, place: usize) -> String {
    let another = if text[place..].starts_with('A') { "B" } else { "A" };
    format!("{}{another}{}", &text[..place], &text[place + 1..])
}

/// How far each differs from the first.
#[expect(clippy::disallowed_methods, reason = "the time is what is measured")]
async fn compare(cases: &[Refused], samples: usize) -> anyhow::Result<Vec<(&'static str, f64)>> {
    let client = Client::builder(TokioExecutor::new()).build_http();
    // Once more when it fails: a machine has bad moments, an oracle has them always.
    let mut found = Vec::new();
    for _ in 0..2 {
        let mut times = vec![Vec::with_capacity(samples); cases.len()];
        for _ in 0..samples {
            // In turn, so that the machine's moods hit all alike.
            for ((name, request), times) in cases.iter().zip(&mut times) {
                let request = request.clone();
                let begun = Instant::now();
                let answer = client.request(request).await?;
                let status = answer.status();
                answer.into_body().collect().await?;
                times.push(begun.elapsed().as_nanos() as f64);
                anyhow::ensure!(status == 401, "{name} was answered {status}");
            }
        }
        let times: Vec<_> = times.into_iter().map(trimmed).collect();
        let others = cases.iter().zip(&times).skip(1);
        found = others.map(|((name, _), own)| (*name, welch(&times[0], own).abs())).collect();
        if found.iter().all(|(_, t)| *t < T_MAX) {
            break;
        }
    }
    Ok(found)
}

fn trimmed(mut times: Vec<f64>) -> Vec<f64> {
    times.sort_by(f64::total_cmp);
    times.truncate((times.len() as f64 * KEPT_SHARE) as usize);
    times
}

/// How unlikely it is that two samples have one mean.
fn welch(one: &[f64], other: &[f64]) -> f64 {
    let about = |times: &[f64]| {
        let count = times.len() as f64;
        let mean = times.iter().sum::<f64>() / count;
        let variance = times.iter().map(|t| (t - mean).powi(2)).sum::<f64>() / (count - 1.0);
        (mean, variance / count)
    };
    let ((mean_one, error_one), (mean_other, error_other)) = (about(one), about(other));
    (mean_one - mean_other) / (error_one + error_other).sqrt()
}

#[cfg(test)]
mod tests {
    use super::welch;

    #[test]
    fn samples_with_one_mean_are_told_from_those_with_two() {
        let wave = |shift: f64| (0..1_000).map(|n| f64::from(n % 7) + shift).collect::<Vec<_>>();
        assert!(welch(&wave(0.0), &wave(0.0)).abs() < 0.1);
        assert!(welch(&wave(0.0), &wave(1.0)).abs() > 4.5);
    }
}
