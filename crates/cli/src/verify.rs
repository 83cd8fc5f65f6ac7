//! `svc verify`: says whether a signature fits a body, and if not, precisely why (spec 5.3).

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use secrecy::ExposeSecret;
use serde::Serialize;

use crate::forms::{self, Form, Notation};
use crate::lang::{Lang, Text};
use crate::{output, webhook_secret};

const DIGITS: usize = 64;

#[derive(clap::Args)]
#[command(after_help = "Examples (with SVC_WEBHOOK_SECRET set):
  svc verify body.json --signature \\
    6cb446cc99c823effa8c1e8b3ae792e57f0b39914f6a06fcda47e435b672f250
  svc verify --signature \"$HEADER\" < body.json

The body must be the bytes as they came; printf '%s' adds no line break,
echo does.

Exit code: 0 the signature fits, 1 it does not, 2 it could not be looked at.")]
pub(crate) struct Args {
    /// The body; stdin if absent
    file: Option<PathBuf>,
    /// The content of x-svc-content-token
    #[arg(long, value_name = "HEX", allow_hyphen_values = true)]
    signature: String,
    /// File with the webhook secret, instead of SVC_WEBHOOK_SECRET
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Language of the explanation [default: by the locale]
    #[arg(long, value_enum)]
    lang: Option<Lang>,
}

/// Why a signature does not fit; several can be true of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    Empty,
    White,
    Length(usize),
    NotHex,
    /// Of Standard Webhooks, which is computed over more than the body.
    OtherHeader,
    NoBody,
    Written(Notation),
    Computed(Form),
    /// A digest, but of nothing we can think of.
    Unexplained,
}

#[derive(Serialize)]
struct Verdict {
    valid: bool,
    /// Signed before the switch to a new secret.
    previous_secret: bool,
    bytes: usize,
    reasons: Vec<ReasonView>,
}

#[derive(Serialize)]
struct ReasonView {
    id: &'static str,
    text: String,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    match explain(args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(fault) => {
            output::error(&fault);
            output::COULD_NOT_RUN.into()
        }
    }
}

fn explain(args: &Args) -> anyhow::Result<bool> {
    let secret = webhook_secret::read(args.secret_file.as_deref())?;
    let body = read_body(args.file.as_deref())?;
    let lang = Lang::pick(args.lang);
    let mut reasons = why_not(&args.signature, &body, secret.expose_secret());
    let previous = webhook_secret::read_previous()?.filter(|_| !reasons.is_empty());
    let is_previous = previous.is_some_and(|previous| {
        why_not(&args.signature, &body, previous.expose_secret()).is_empty()
    });
    if is_previous {
        reasons.clear();
    }
    let verdict = Verdict {
        valid: reasons.is_empty(),
        previous_secret: is_previous,
        bytes: body.len(),
        reasons: reasons
            .iter()
            .map(|why| ReasonView { id: why.code(), text: why.say(lang) })
            .collect(),
    };
    if args.json {
        output::json(&verdict);
    } else {
        print(&verdict, lang);
    }
    Ok(verdict.valid)
}

fn read_body(file: Option<&Path>) -> anyhow::Result<Vec<u8>> {
    let mut body = Vec::new();
    match file {
        Some(path) => {
            body =
                std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        }
        None => {
            std::io::stdin().read_to_end(&mut body).context("cannot read the body from stdin")?;
        }
    }
    Ok(body)
}

/// Nothing, if the signature fits.
fn why_not(given: &str, body: &[u8], secret: &str) -> Vec<Why> {
    let right = forms::right(secret, body);
    if given == Notation::Hex.write(&right) {
        return Vec::new();
    }
    if given.is_empty() {
        return vec![Why::Empty];
    }
    if body.is_empty() {
        return vec![Why::NoBody];
    }
    if given.trim_start().starts_with("v1,") {
        return vec![Why::OtherHeader];
    }
    let mut found = Vec::new();
    let trimmed = given.trim();
    if trimmed != given {
        found.push(Why::White);
    }
    let Some((notation, digest)) = Notation::read(trimmed) else {
        let hex = trimmed.bytes().all(|b| b.is_ascii_hexdigit());
        found.push(if hex { Why::Length(trimmed.len()) } else { Why::NotHex });
        return found;
    };
    if notation != Notation::Hex {
        found.push(Why::Written(notation));
    }
    if digest == right {
        return found;
    }
    if let Some((form, _)) =
        forms::wrong(secret, body).into_iter().find(|(_, wrong)| *wrong == digest)
    {
        found.push(Why::Computed(form));
    } else if notation == Notation::Hex && trimmed.len() != DIGITS {
        found.push(Why::Length(trimmed.len()));
    } else {
        found.push(Why::Unexplained);
    }
    found
}

fn print(verdict: &Verdict, lang: Lang) {
    let text: Text = match (verdict.valid, verdict.previous_secret) {
        (true, true) => [
            "Válida: a assinatura é a deste corpo ({} bytes) com o segredo anterior.",
            "Valid: this is the signature of this body ({} bytes) with the previous secret.",
            "Valide : c'est la signature de ce corps ({} octets) avec le secret précédent.",
        ],
        (true, false) => [
            "Válida: a assinatura é a deste corpo ({} bytes) com este segredo.",
            "Valid: this is the signature of this body ({} bytes) with this secret.",
            "Valide : c'est la signature de ce corps ({} octets) avec ce secret.",
        ],
        (false, _) => [
            "Não é válida para este corpo ({} bytes):",
            "Not valid for this body ({} bytes):",
            "Pas valide pour ce corps ({} octets) :",
        ],
    };
    output::line(output::bold(lang.of(text).replace("{}", &verdict.bytes.to_string())));
    for reason in &verdict.reasons {
        output::line(format_args!("- {}", reason.text));
    }
}

impl Why {
    fn code(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::White => "white-space",
            Self::Length(_) => "length",
            Self::NotHex => "not-hex",
            Self::OtherHeader => "other-header",
            Self::NoBody => "no-body",
            Self::Written(Notation::UpperCase) => "upper-case",
            Self::Written(Notation::Prefixed) => "sha256-prefix",
            Self::Written(Notation::Base64) => "base64",
            Self::Written(Notation::Hex) => "hex",
            Self::Computed(form) => form.code(),
            Self::Unexplained => "unexplained",
        }
    }

    fn say(self, lang: Lang) -> String {
        let said = lang.of(self.text());
        match self {
            Self::Length(length) => said.replace("{}", &length.to_string()),
            _ => said.to_owned(),
        }
    }

    fn text(self) -> Text {
        match self {
            Self::Empty => [
                "está vazia: um cabeçalho ausente conta como vazio",
                "it is empty: an absent header counts as empty",
                "elle est vide : un en-tête absent compte comme vide",
            ],
            Self::White => [
                "tem espaços à volta: corte-os antes de comparar",
                "it has white space around it: cut that off before comparing",
                "elle est entourée de blancs : coupez-les avant de comparer",
            ],
            Self::Length(_) => [
                "tem {} caracteres: têm de ser exactamente 64",
                "it has {} characters: it must have exactly 64",
                "elle a {} caractères : il en faut exactement 64",
            ],
            Self::NotHex => [
                "não é hexadecimal: têm de ser 64 dígitos de 0 a 9 e de a a f",
                "it is not hexadecimal: it must be 64 digits from 0 to 9 and a to f",
                "elle n'est pas hexadécimale : il faut 64 chiffres de 0 à 9 et de a à f",
            ],
            Self::OtherHeader => [
                "é de webhook-signature: dê aqui o conteúdo de x-svc-content-token, 64 dígitos",
                "it comes from webhook-signature: give the content of x-svc-content-token here, 64 digits",
                "elle vient de webhook-signature : donnez ici le contenu de x-svc-content-token, 64 chiffres",
            ],
            Self::NoBody => [
                "o corpo está vazio: dê o ficheiro com os bytes que chegaram",
                "the body is empty: give the file with the bytes that came",
                "le corps est vide : donnez le fichier avec les octets reçus",
            ],
            Self::Written(Notation::UpperCase | Notation::Hex) => [
                "está em maiúsculas: há uma só forma, dígitos minúsculos",
                "it is in upper case: there is one form only, lower-case digits",
                "elle est en majuscules : il n'y a qu'une forme, des chiffres minuscules",
            ],
            Self::Written(Notation::Prefixed) => [
                "começa por «sha256=»: o cabeçalho tem só os 64 dígitos",
                "it begins with sha256=: the header has the 64 digits alone",
                "elle commence par « sha256= » : l'en-tête n'a que les 64 chiffres",
            ],
            Self::Written(Notation::Base64) => [
                "está em base64: escreve-se em hexadecimal (64 dígitos minúsculos)",
                "it is in base64: it must be written in hex (64 lower-case digits)",
                "elle est en base64 : elle s'écrit en hexadécimal (64 chiffres minuscules)",
            ],
            Self::Computed(form) => form.text(),
            Self::Unexplained => [
                "é de outro corpo ou de outro segredo: guarde os bytes tal como chegaram, e confirme a aplicação, o ambiente e se o segredo foi mudado",
                "it belongs to another body or another secret: keep the bytes as they came, and check the application, the environment, and whether the secret was rotated",
                "elle correspond à un autre corps ou à un autre secret : gardez les octets tels quels, et vérifiez l'application, l'environnement, et si le secret a été changé",
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reencode::Style;

    /// The example of docs/webhooks.md.
    const SECRET: &str = "whsec_c3ZjLWRvY3MtZXhhbXBsZS1rZXktMzItYnl0ZXMhISE=";
    const BODY: &[u8] = br#"{"event":"payment","data":{"externalTransactionId":"order_6f9619ff-8b86-4d01-b42d-00cf4fc964ff","paymentStatus":"CON","referenceNumber":"01JC4E9V7Q3M8Y5T2K6R1N0WXZ","amount":15000}}"#;
    const SIGNATURE: &str = "6cb446cc99c823effa8c1e8b3ae792e57f0b39914f6a06fcda47e435b672f250";

    #[test]
    fn the_example_of_the_documentation_is_valid() {
        assert_eq!(why_not(SIGNATURE, BODY, SECRET), []);
    }

    #[test]
    fn each_way_to_write_it_wrong_is_told() {
        for (given, why) in [
            (String::new(), vec![Why::Empty]),
            (SIGNATURE[..63].to_owned(), vec![Why::Length(63)]),
            (SIGNATURE[..62].to_owned(), vec![Why::Length(62)]),
            (format!("{SIGNATURE}00"), vec![Why::Length(66)]),
            (SIGNATURE.to_uppercase(), vec![Why::Written(Notation::UpperCase)]),
            (format!("sha256={SIGNATURE}"), vec![Why::Written(Notation::Prefixed)]),
            (format!("{SIGNATURE}\n"), vec![Why::White]),
            ("é".repeat(64), vec![Why::NotHex]),
            ("v1,twfJ0g==".to_owned(), vec![Why::OtherHeader]),
            ("0".repeat(64), vec![Why::Unexplained]),
        ] {
            assert_eq!(why_not(&given, BODY, SECRET), why, "{given}");
        }
        assert_eq!(why_not(SIGNATURE, b"", SECRET), [Why::NoBody]);
        let base64 = Notation::Base64.write(&forms::right(SECRET, BODY));
        assert_eq!(why_not(&base64, BODY, SECRET), [Why::Written(Notation::Base64)]);
    }

    #[test]
    fn each_way_to_compute_it_wrong_is_told_also_when_it_is_written_wrong() {
        for (form, digest) in forms::wrong(SECRET, BODY) {
            let given = Notation::Hex.write(&digest);
            assert_eq!(why_not(&given, BODY, SECRET), [Why::Computed(form)], "{form:?}");
        }
        let with_break = [BODY, b"\n"].concat();
        let upper = Notation::UpperCase.write(&forms::right(SECRET, &with_break));
        let both = [Why::Written(Notation::UpperCase), Why::Computed(Form::LineBreakAdded)];
        assert_eq!(why_not(&upper, BODY, SECRET), both);
        // The other way about: the body was saved with an editor.
        let removed = [Why::Computed(Form::LineBreakRemoved)];
        assert_eq!(why_not(SIGNATURE, &with_break, SECRET), removed);
    }

    #[test]
    fn a_body_that_was_written_again_is_told() {
        let pretty = crate::reencode::reencode(BODY, Style::Indented2).unwrap();
        let told = why_not(SIGNATURE, &pretty, SECRET);
        assert_eq!(told, [Why::Computed(Form::Reencoded(Style::Compact))]);
    }
}
