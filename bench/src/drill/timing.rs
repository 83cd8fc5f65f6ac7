//! Does the time of a refusal tell which secret is nearly right, or which id exists?

use std::time::Instant;

use super::{Ledger, Setting};
use crate::Engine;
use crate::partner::Partner;
use crate::process::{Data, Server, svc};

/// Welch's t above this says the two differ (goal G19).
const T_MAX: f64 = 4.5;
/// The slowest share of the samples is the machine's business, not the service's.
const KEPT_SHARE: f64 = 0.9;
const MORE: [&str; 4] =
    ["--token-failures-per-minute", "10000000", "--address-failures-per-minute", "10000000"];

#[expect(clippy::disallowed_methods, reason = "the time is what is measured")]
pub(super) async fn run(setting: &Setting) -> anyhow::Result<Ledger> {
    let samples = setting.either(1_000, 20_000);
    let mut ledger = Ledger::new(format!("Timing of /token: {samples} samples of each refusal"));
    let data = Data::fresh(Engine::Sqlite, "timing").await?;
    let known = Partner::create(&data).await?;
    let disabled = Partner::create(&data).await?;
    let disable = ["partner", "disable", disabled.client_id(), "--json", "--database", &data.url];
    svc(&disable).await?;
    let server = Server::serve(&data, &MORE).await?;
    let right = known.secret().to_owned();
    let turned = |at: usize| {
        let mut secret = right.clone().into_bytes();
        secret[at] = if secret[at] == b'A' { b'B' } else { b'A' };
        String::from_utf8_lossy(&secret).into_owned()
    };
    let cases = [
        ("wrong from the first character", known.client_id(), turned(right.len() - 40)),
        ("wrong at the last character", known.client_id(), turned(right.len() - 1)),
        ("an unknown id", "partner_that_nobody_knows_00000000", right.clone()),
        ("a disabled partner", disabled.client_id(), disabled.secret().to_owned()),
    ];
    let caller = known.caller(&server.target.address).await?;
    // Once more when it fails: a machine has bad moments, an oracle has them always.
    let mut worst = Vec::new();
    for _ in 0..2 {
        let mut times = vec![Vec::with_capacity(samples); cases.len()];
        for _ in 0..samples {
            // In turn, so that the machine's moods hit all alike.
            for ((_, id, secret), times) in cases.iter().zip(&mut times) {
                let begun = Instant::now();
                let status = caller.token_status(id, secret).await?;
                times.push(begun.elapsed().as_nanos() as f64);
                anyhow::ensure!(status == 401, "a wrong secret was answered {status}");
            }
        }
        let times: Vec<_> = times.into_iter().map(trimmed).collect();
        worst = (1..cases.len()).map(|case| welch(&times[0], &times[case]).abs()).collect();
        if worst.iter().all(|t| *t < T_MAX) {
            break;
        }
    }
    for ((name, ..), t) in cases[1..].iter().zip(&worst) {
        let figure = format!("t = {t:.1} (< {T_MAX})");
        ledger.promise(&format!("{} against {name}", cases[0].0), figure, *t < T_MAX);
    }
    Ok(ledger)
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
