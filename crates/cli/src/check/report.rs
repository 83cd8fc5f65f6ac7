//! The verdicts for a person (a table), for a build server (JUnit) and for a program (JSON).

use std::time::Duration;

use askama::Template;
use serde::Serialize;

use super::Args;
use super::judge::{Effect, Graded, Row, Seen};
use crate::lang::Lang;
use crate::output;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report<'a> {
    webhook_url: &'a str,
    passed: usize,
    failed: usize,
    not_run: usize,
    effect_seen: bool,
    fulfilments_counted: bool,
    cases: Vec<CaseView>,
    findings: Vec<FindingView>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CaseView {
    id: &'static str,
    verdict: &'static str,
    http_status: Option<u16>,
    ms: Option<u128>,
    state: Option<&'static str>,
    faults: Vec<String>,
}

#[derive(Serialize)]
struct FindingView {
    id: &'static str,
    text: String,
}

pub(super) fn json<'a>(graded: &Graded, webhook_url: &'a str, lang: Lang) -> Report<'a> {
    let cases = graded.rows.iter().map(|row| case_view(row, lang)).collect();
    let findings = graded
        .findings
        .iter()
        .map(|finding| FindingView { id: finding.code(), text: finding.say(lang) })
        .collect();
    let (passed, failed, not_run) = totals(graded);
    Report {
        webhook_url,
        passed,
        failed,
        not_run,
        effect_seen: graded.effect_seen,
        fulfilments_counted: graded.count_seen,
        cases,
        findings,
    }
}

fn totals(graded: &Graded) -> (usize, usize, usize) {
    let count = |which: fn(&Row) -> bool| graded.rows.iter().filter(|row| which(row)).count();
    let (passed, failed) = (count(Row::passed), count(Row::failed));
    (passed, failed, graded.rows.len() - passed - failed)
}

fn case_view(row: &Row, lang: Lang) -> CaseView {
    let verdict = match (row.passed(), row.failed()) {
        (true, _) => "passed",
        (_, true) => "failed",
        _ => "not-run",
    };
    let state = row.seen.as_ref().and_then(|seen| match seen.effect {
        Effect::State { after, .. } | Effect::Held { after, .. } => Some(after.code()),
        _ => None,
    });
    CaseView {
        id: row.case.code(),
        verdict,
        http_status: row.status(),
        ms: row.seen.as_ref().map(|seen| seen.took.as_millis()),
        state,
        faults: row.faults.iter().map(|fault| fault.say(lang)).collect(),
    }
}

#[derive(Template)]
#[template(
    ext = "xml",
    escape = "html",
    source = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="svc check" tests="{{ rows.len() }}" failures="{{ failed }}" skipped="{{ not_run }}">
{%- for row in rows %}
  <testcase classname="webhook" name="{{ row.id }}: {{ row.title }}" time="{{ row.seconds }}">
{%- if let Some(text) = row.failure %}<failure message="{{ text }}"/>{% endif -%}
{%- if row.skipped %}<skipped/>{% endif -%}
  </testcase>
{%- endfor %}
{%- if !findings.is_empty() %}
  <system-out>{% for finding in findings %}{{ finding }}
{% endfor %}</system-out>
{%- endif %}
</testsuite>
"#
)]
struct Junit {
    rows: Vec<JunitRow>,
    failed: usize,
    not_run: usize,
    findings: Vec<String>,
}

struct JunitRow {
    id: &'static str,
    title: &'static str,
    seconds: String,
    failure: Option<String>,
    skipped: bool,
}

pub(super) fn junit(graded: &Graded, lang: Lang) -> anyhow::Result<String> {
    let rows = graded.rows.iter().map(|row| {
        let faults: Vec<_> = row.faults.iter().map(|fault| fault.say(lang)).collect();
        let took = row.seen.as_ref().map_or(Duration::ZERO, |seen| seen.took);
        JunitRow {
            id: row.case.code(),
            title: lang.of(row.case.text()),
            seconds: format!("{:.3}", took.as_secs_f64()),
            failure: row.failed().then(|| faults.join("; ")),
            skipped: row.seen.is_none(),
        }
    });
    let (_, failed, not_run) = totals(graded);
    let findings = graded.findings.iter().map(|finding| finding.say(lang)).collect();
    Ok(Junit { rows: rows.collect(), failed, not_run, findings }.render()?)
}

pub(super) fn table(graded: &Graded, args: &Args, lang: Lang) {
    let [case, answer, effect] =
        [["CASO", "CASE", "CAS"], ["RESPOSTA", "ANSWER", "RÉPONSE"], ["EFEITO", "EFFECT", "EFFET"]]
            .map(|text| lang.of(text).to_owned());
    let mut lines = vec![[String::from(" "), case, answer, effect, String::new()]];
    lines.extend(graded.rows.iter().map(|row| cells(row, graded.effect_seen, lang)));
    let width = |column: usize| {
        lines.iter().map(|cells| cells[column].chars().count()).max().unwrap_or_default()
    };
    let widths: [usize; 5] = std::array::from_fn(width);
    for (index, line) in lines.iter().enumerate() {
        let padded: Vec<_> =
            line.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        let text = padded.join("  ").trim_end().to_owned();
        output::line(match index.checked_sub(1).map(|row| &graded.rows[row]) {
            None => output::bold(text),
            Some(row) => painted_row(row, &text),
        });
    }
    conclude(graded, args, lang);
}

fn cells(row: &Row, effect_seen: bool, lang: Lang) -> [String; 5] {
    let mark = match (row.passed(), row.failed()) {
        (true, _) => "✓",
        (_, true) => "✗",
        _ => "–",
    };
    let not_tried = ["não tentado", "not tried", "pas essayé"];
    let (answer, effect) = match &row.seen {
        None => (lang.of(not_tried).to_owned(), String::new()),
        Some(seen) if !effect_seen => {
            (answer(row, seen), lang.of(["não visto", "not seen", "non vu"]).to_owned())
        }
        Some(seen) => (answer(row, seen), effect_text(seen, lang)),
    };
    let faults: Vec<_> = row.faults.iter().map(|fault| fault.say(lang)).collect();
    [mark.to_owned(), lang.of(row.case.text()).to_owned(), answer, effect, faults.join("; ")]
}

fn answer(row: &Row, seen: &Seen) -> String {
    let status = match &seen.answer {
        // The slowest of several: only its time counts.
        Ok(_) if row.case == super::case::Case::InTime => String::new(),
        Ok(status) => status.to_string(),
        Err(_) => "–".to_owned(),
    };
    format!("{status:3} {} ms", seen.took.as_millis())
}

fn effect_text(seen: &Seen, lang: Lang) -> String {
    match seen.effect {
        Effect::NotSeen => String::new(),
        Effect::StillUnknown(true) => lang.of(["nenhum", "none", "aucun"]).to_owned(),
        Effect::StillUnknown(false) => "PEN?".to_owned(),
        Effect::State { before, after, count, .. } if before != after => {
            counted(&format!("{} → {}", before.code(), after.code()), count)
        }
        Effect::State { after, count, .. } | Effect::Held { after, count } => {
            counted(after.code(), count)
        }
    }
}

fn counted(text: &str, count: Option<u64>) -> String {
    count.map_or(text.to_owned(), |count| format!("{text} ×{count}"))
}

fn conclude(graded: &Graded, args: &Args, lang: Lang) {
    output::line("");
    for (number, finding) in graded.findings.iter().enumerate() {
        output::line(format_args!("{}. {}", number + 1, finding.say(lang)));
    }
    if !graded.findings.is_empty() {
        output::line("");
    }
    let (passed, failed, not_run) = totals(graded);
    let text = [
        "{p} de {n} passaram, {f} falharam, {s} não tentados.",
        "{p} of {n} passed, {f} failed, {s} not tried.",
        "{p} sur {n} réussis, {f} échoués, {s} pas essayés.",
    ];
    let mut told = lang.of(text).to_owned();
    for (place, number) in
        [("{p}", passed), ("{n}", graded.rows.len()), ("{f}", failed), ("{s}", not_run)]
    {
        told = told.replace(place, &number.to_string());
    }
    output::line(output::painted(if graded.passed() { "1;32" } else { "1;31" }, told));
    if let Some(remark) = unseen(graded, args, lang) {
        output::line(remark);
    }
}

/// What the verdicts leave out.
fn unseen(graded: &Graded, args: &Args, lang: Lang) -> Option<String> {
    if !graded.effect_seen {
        let text = match args.create_url {
            None => [
                "Efeito não visto: sem --status-url só as respostas contam.",
                "Effect not seen: without --status-url only the answers count.",
                "Effet non vu : sans --status-url seules les réponses comptent.",
            ],
            Some(_) => [
                "Efeito não visto: --create-url fez as encomendas, mas sem --status-url só as respostas contam.",
                "Effect not seen: --create-url made the orders, but without --status-url only the answers count.",
                "Effet non vu : --create-url a fait les commandes, mais sans --status-url seules les réponses comptent.",
            ],
        };
        return Some(lang.of(text).to_owned());
    }
    if graded.count_seen {
        return None;
    }
    let text = [
        "Fornecimentos não contados: o estado não tem o campo {}.",
        "Fulfilments not counted: the status has no field {}.",
        "Livraisons non comptées : l'état n'a pas le champ {}.",
    ];
    Some(lang.of(text).replace("{}", &args.count_field))
}

fn painted_row(row: &Row, text: &str) -> String {
    let code = match (row.passed(), row.failed()) {
        (true, _) => "32",
        (_, true) => "31",
        _ => "2",
    };
    output::painted(code, text)
}
