//! What people read: every error and every fault of a field, in three languages, saying what to do.

use super::error::{ApiError, Looks, TokenFault};
use super::issues::{FieldFault, Issue};
use super::language::Language;

impl Issue {
    fn text(self, language: Language) -> String {
        let [pt, en, fr] = match self {
            Self::Required => ["é obrigatório", "is required", "est obligatoire"],
            Self::NotJson => ["não é JSON válido", "is not valid JSON", "n'est pas du JSON valide"],
            Self::NotAnObject => [
                "tem de ser um objecto JSON escrito num texto",
                "must be a JSON object written as a string",
                "doit être un objet JSON écrit dans une chaîne",
            ],
            Self::NotAJsonObject => {
                ["tem de ser um objecto JSON", "must be a JSON object", "doit être un objet JSON"]
            }
            Self::NotAString => ["tem de ser texto", "must be a string", "doit être une chaîne"],
            Self::NotStringified => [
                "tem de ser texto com o JSON dentro (JSON.stringify), não o próprio objecto",
                "must be a string with the JSON inside (JSON.stringify), not the object itself",
                "doit être une chaîne qui contient le JSON (JSON.stringify), pas l'objet lui-même",
            ],
            Self::NotAnInteger => [
                "tem de ser um número inteiro, sem casas decimais nem aspas",
                "must be an integer, without decimals or quotes",
                "doit être un entier, sans décimales ni guillemets",
            ],
            Self::Duplicate => ["aparece duas vezes", "appears twice", "apparaît deux fois"],
            Self::Empty => ["não pode estar vazio", "must not be empty", "ne peut pas être vide"],
            Self::TooSmall => {
                ["tem de ser pelo menos 1", "must be at least 1", "doit être au moins 1"]
            }
            Self::TooLarge { .. } => {
                ["não pode passar de", "must be at most", "ne peut pas dépasser"]
            }
            Self::TooLong { .. } => [
                "é longo demais; o máximo é",
                "is too long; the most is",
                "est trop long ; le maximum est",
            ],
            Self::Negative => {
                ["não pode ser negativo", "must not be negative", "ne peut pas être négatif"]
            }
            Self::NotARate => [
                "tem de ser um número de 0 a 1",
                "must be a number from 0 to 1",
                "doit être un nombre de 0 à 1",
            ],
            Self::NotAscii => [
                "só pode ter caracteres ASCII visíveis, sem espaços",
                "must be printable ASCII without spaces",
                "doit être en ASCII imprimable, sans espaces",
            ],
            Self::ControlCharacters => [
                "não pode ter caracteres de controlo nem de direcção do texto",
                "must not contain control or text-direction characters",
                "ne doit pas contenir de caractères de contrôle ou de sens d'écriture",
            ],
            Self::KeyPrefix => [
                "é a chave publicável sem o prefixo pk_test_ ou pk_live_; retire o prefixo",
                "is the publishable key without its pk_test_ or pk_live_ prefix; remove the prefix",
                "est la clé publiable sans son préfixe pk_test_ ou pk_live_ ; retirez le préfixe",
            ],
            Self::NotAnAbsoluteUrl => [
                "tem de ser um endereço http ou https completo",
                "must be an absolute http or https URL",
                "doit être une adresse http ou https complète",
            ],
            Self::UrlCharacters => [
                "não pode ter espaços, barras invertidas nem caracteres de controlo",
                "must not contain spaces, backslashes or control characters",
                "ne doit contenir ni espaces, ni barres obliques inverses, ni caractères de contrôle",
            ],
            Self::HttpsRequired => [
                "tem de usar https em produção",
                "must use https in production",
                "doit utiliser https en production",
            ],
            Self::UrlCredentials => [
                "não pode levar utilizador nem palavra-passe",
                "must not carry a user name or password",
                "ne doit pas contenir d'identifiant ni de mot de passe",
            ],
            Self::PrivateHost => [
                "tem de indicar um servidor público. Na sua máquina: indique https://example.com/webhook e use svc listen, ou um sandbox seu com --private-webhook-targets",
                "must name a public host. On your own machine: give https://example.com/webhook and use svc listen, or a sandbox of your own with --private-webhook-targets",
                "doit désigner un serveur public. Sur votre machine : indiquez https://example.com/webhook et utilisez svc listen, ou votre propre sandbox avec --private-webhook-targets",
            ],
            Self::NotOneOf(_) => {
                ["tem de ser um destes:", "must be one of", "doit être l'un de ceux-ci :"]
            }
            Self::NotACursor => [
                "tem de ser o nextCursor de uma resposta anterior",
                "must be the nextCursor of an earlier answer",
                "doit être le nextCursor d'une réponse précédente",
            ],
            Self::NotANotice => [
                "não é uma notificação como a documentação a descreve: verifique kind, amount, railPaymentId e attemptId (ou entity e reference)",
                "is not a notice as documented: check kind, amount, railPaymentId and attemptId (or entity and reference)",
                "n'est pas une notification telle que documentée : vérifiez kind, amount, railPaymentId et attemptId (ou entity et reference)",
            ],
            Self::NotUtf8 => ["não está em UTF-8", "is not in UTF-8", "n'est pas en UTF-8"],
            Self::ByteOrderMark => [
                "começa por uma marca de ordem de bytes (BOM); retire-a",
                "begins with a byte order mark (BOM); remove it",
                "commence par une marque d'ordre des octets (BOM) ; retirez-la",
            ],
            Self::Port => [
                "tem de usar a porta 80, 443 ou uma a partir de 1024 que não seja de uma base de dados",
                "must use port 80, 443 or one from 1024 on that no database uses",
                "doit utiliser le port 80, 443 ou un port à partir de 1024 qui n'est pas celui d'une base de données",
            ],
            Self::OwnHost => [
                "não pode apontar para este serviço",
                "must not point at this service",
                "ne doit pas désigner ce service",
            ],
            Self::HostNotNamed => [
                "tem de ir para um dos servidores indicados para a aplicação; peça ao operador que acrescente o seu",
                "must go to one of the hosts named for the application; ask the operator to add yours",
                "doit aller vers un des serveurs indiqués pour l'application ; demandez à l'opérateur d'ajouter le vôtre",
            ],
        };
        let text = language.choose(pt, en, fr);
        match self {
            Self::TooLarge { max } => format!("{text} {max}"),
            Self::TooLong { max } => format!("{text} {max}"),
            Self::NotOneOf(values) => format!("{text} {values}"),
            _ => text.to_owned(),
        }
    }
}

impl Language {
    fn choose<'a>(self, pt: &'a str, en: &'a str, fr: &'a str) -> &'a str {
        match self {
            Self::Pt => pt,
            Self::En => en,
            Self::Fr => fr,
        }
    }
}

/// The `message` of an error.
pub(super) fn message(error: &ApiError, language: Language) -> String {
    let [pt, en, fr] = match error {
        ApiError::InvalidClient(looks) => invalid_client(*looks),
        ApiError::InvalidSession => [
            "A sessão desta página terminou. Recarregue a página.",
            "The session of this page has ended. Reload the page.",
            "La session de cette page est terminée. Rechargez la page.",
        ],
        ApiError::InvalidSignature => [
            "Assinatura em falta ou errada. Assine os bytes do corpo com o segredo do conector.",
            "Signature missing or wrong. Sign the bytes of the body with the connector's secret.",
            "Signature absente ou fausse. Signez les octets du corps avec le secret du connecteur.",
        ],
        ApiError::ForeignOrigin => [
            "Este pedido veio de outra página. Faça-o na página de pagamento.",
            "This request came from another page. Make it on the payment page.",
            "Cette demande vient d'une autre page. Faites-la sur la page de paiement.",
        ],
        ApiError::HttpsRequired => [
            "A produção só responde por https. Use o endereço público do serviço.",
            "Production answers over https only. Use the public address of the service.",
            "La production ne répond qu'en https. Utilisez l'adresse publique du service.",
        ],
        ApiError::InvalidToken => [
            "Token em falta, inválido ou expirado. Peça outro em POST /token e envie-o em Authorization: Bearer.",
            "Token missing, invalid or expired. Get a new one from POST /token and send it as Authorization: Bearer.",
            "Jeton absent, invalide ou expiré. Demandez-en un autre à POST /token et envoyez-le dans Authorization: Bearer.",
        ],
        ApiError::InvalidRequest(fault) => token_fault(*fault),
        ApiError::UnsupportedGrantType => [
            "grant_type tem de ser client_credentials.",
            "grant_type must be client_credentials.",
            "grant_type doit être client_credentials.",
        ],
        ApiError::InvalidBody(faults) => {
            let start = language.choose("Corpo inválido", "Invalid body", "Corps invalide");
            return with_faults(start, faults, language);
        }
        ApiError::InvalidQuery(faults) => {
            let start = language.choose(
                "Parâmetros inválidos",
                "Invalid parameters",
                "Paramètres invalides",
            );
            return with_faults(start, faults, language);
        }
        ApiError::IdempotencyConflict(fields) => {
            let text = language.choose(
                "Este externalTransactionId já pertence a outra encomenda. Diferem em",
                "This externalTransactionId already belongs to another order. They differ in",
                "Cet externalTransactionId appartient déjà à une autre commande. Elles diffèrent par",
            );
            let then = language.choose(
                "Use outro id, ou repita o pedido tal como foi da primeira vez.",
                "Use another id, or repeat the request as it was the first time.",
                "Utilisez un autre id, ou répétez la requête telle qu'elle était la première fois.",
            );
            return format!("{text}: {}. {then}", fields.join(", "));
        }
        ApiError::OrderNotFound => [
            "Não existe nenhuma encomenda com este externalTransactionId nesta aplicação.",
            "There is no order with this externalTransactionId in this application.",
            "Aucune commande n'a cet externalTransactionId dans cette application.",
        ],
        ApiError::ApplicationNotFound => [
            "Aplicação desconhecida. O applicationUUID é a chave publicável sem o prefixo.",
            "Unknown application. The applicationUUID is the publishable key without its prefix.",
            "Application inconnue. L'applicationUUID est la clé publiable sans son préfixe.",
        ],
        ApiError::RouteNotFound => [
            "Este endereço não existe. Veja /docs.",
            "This address does not exist. See /docs.",
            "Cette adresse n'existe pas. Voir /docs.",
        ],
        ApiError::MethodNotAllowed => [
            "Este endereço não aceita este método. Veja o cabeçalho Allow.",
            "This address does not take this method. See the Allow header.",
            "Cette adresse n'accepte pas cette méthode. Voir l'en-tête Allow.",
        ],
        ApiError::MalformedRequest => [
            "O pedido chegou incompleto ou mal formado. Envie-o de novo.",
            "The request arrived incomplete or malformed. Send it again.",
            "La requête est arrivée incomplète ou mal formée. Renvoyez-la.",
        ],
        ApiError::RequestTimeout => [
            "O pedido demorou demais a chegar. Envie-o de novo.",
            "The request took too long to arrive. Send it again.",
            "La requête a mis trop de temps à arriver. Renvoyez-la.",
        ],
        ApiError::PayloadTooLarge => [
            "O corpo do pedido é grande demais: no máximo 64 KiB, 8 KiB para formulários.",
            "The request body is too large: at most 64 KiB, 8 KiB for forms.",
            "Le corps de la requête est trop grand : au plus 64 Kio, 8 Kio pour les formulaires.",
        ],
        ApiError::UriTooLong => [
            "O endereço do pedido é longo demais: no máximo 4096 bytes, com os parâmetros.",
            "The request address is too long: at most 4096 bytes, with its parameters.",
            "L'adresse de la requête est trop longue : au plus 4096 octets, avec ses paramètres.",
        ],
        ApiError::UnsupportedMediaType(expected) => {
            return match language {
                Language::Pt => {
                    format!("Envie aqui Content-Type: {expected}, em UTF-8 e sem compressão.")
                }
                Language::En => {
                    format!("Send Content-Type: {expected} here, in UTF-8 and uncompressed.")
                }
                Language::Fr => {
                    format!("Envoyez ici Content-Type: {expected}, en UTF-8 et sans compression.")
                }
            };
        }
        ApiError::RateLimited(_) => [
            "Demasiados pedidos. Tente de novo depois do tempo indicado em Retry-After.",
            "Too many requests. Try again after the time in Retry-After.",
            "Trop de requêtes. Réessayez après le délai indiqué dans Retry-After.",
        ],
        ApiError::StorageUnavailable(_) => [
            "Não foi possível gravar agora. Repita o mesmo pedido: a resposta dirá o que aconteceu.",
            "Storing is not possible right now. Repeat the same request: the answer will tell what happened.",
            "Enregistrement impossible pour l'instant. Répétez la même requête : la réponse dira ce qui s'est passé.",
        ],
        ApiError::Internal(_) => [
            "Erro interno. Indique o requestId à equipa de apoio.",
            "Internal error. Give support the requestId.",
            "Erreur interne. Indiquez le requestId au support.",
        ],
    };
    language.choose(pt, en, fr).to_owned()
}

fn invalid_client(looks: Looks) -> [&'static str; 3] {
    match looks {
        Looks::Credentials => [
            "Credenciais inválidas. Envie CLIENT_ID e CLIENT_SECRET, que têm de pertencer um ao outro e a este ambiente, em Authorization: Basic, sem espaços nem quebras de linha.",
            "Invalid credentials. Send CLIENT_ID and CLIENT_SECRET, which must belong together and to this environment, as Authorization: Basic, without spaces or line breaks.",
            "Identifiants invalides. Envoyez CLIENT_ID et CLIENT_SECRET, qui doivent aller ensemble et être de cet environnement, dans Authorization: Basic, sans espace ni saut de ligne.",
        ],
        Looks::WebhookSecret => [
            "CLIENT_SECRET é o segredo dos webhooks (whsec_). O do cliente começa por svcsec_.",
            "CLIENT_SECRET is the webhook secret (whsec_). The client's begins with svcsec_.",
            "CLIENT_SECRET est le secret des webhooks (whsec_). Celui du client commence par svcsec_.",
        ],
        Looks::PublishableKey => [
            "CLIENT_ID é a chave pública (pk_). O identificador do cliente começa por svc_.",
            "CLIENT_ID is the publishable key (pk_). The client's id begins with svc_.",
            "CLIENT_ID est la clé publique (pk_). L'identifiant du client commence par svc_.",
        ],
    }
}

fn token_fault(fault: TokenFault) -> [&'static str; 3] {
    match fault {
        TokenFault::GrantTypeMissing => [
            "Falta grant_type=client_credentials.",
            "grant_type=client_credentials is missing.",
            "grant_type=client_credentials est absent.",
        ],
        TokenFault::ValidityPeriod => [
            "validity_period tem de ser um número inteiro de segundos, a partir de 1.",
            "validity_period must be a whole number of seconds, 1 or more.",
            "validity_period doit être un nombre entier de secondes, à partir de 1.",
        ],
        TokenFault::Form => [
            "O formulário não é válido.",
            "The form is not valid.",
            "Le formulaire n'est pas valide.",
        ],
        TokenFault::TwoCredentials => [
            "Envie as credenciais só em Authorization: Basic, não também no formulário.",
            "Send the credentials in Authorization: Basic only, not in the form as well.",
            "Envoyez les identifiants seulement dans Authorization: Basic, pas aussi dans le formulaire.",
        ],
    }
}

fn with_faults(start: &str, faults: &[FieldFault], language: Language) -> String {
    let faults: Vec<_> = faults
        .iter()
        .map(|fault| format!("{} {}", fault.field, fault.issue.text(language)).trim().to_owned())
        .collect();
    format!("{start}: {}.", faults.join("; "))
}

/// For the documentation: each `error` value once, with its status and English message.
pub(crate) fn all_errors() -> Vec<(u16, &'static str, String)> {
    let told = |error: &ApiError| {
        let (status, value) = error.table();
        (status.as_u16(), value, message(error, Language::En))
    };
    samples().iter().map(told).collect()
}

fn samples() -> [ApiError; 23] {
    let sample = || vec![FieldFault::new("amount", Issue::NotAnInteger)];
    [
        ApiError::InvalidClient(Looks::Credentials),
        ApiError::InvalidToken,
        ApiError::InvalidSession,
        ApiError::InvalidSignature,
        ApiError::ForeignOrigin,
        ApiError::HttpsRequired,
        ApiError::InvalidRequest(TokenFault::ValidityPeriod),
        ApiError::UnsupportedGrantType,
        ApiError::InvalidBody(sample()),
        ApiError::InvalidQuery(vec![FieldFault::new("externalTransactionId", Issue::Required)]),
        ApiError::IdempotencyConflict(vec!["amount"]),
        ApiError::OrderNotFound,
        ApiError::ApplicationNotFound,
        ApiError::RouteNotFound,
        ApiError::MethodNotAllowed,
        ApiError::MalformedRequest,
        ApiError::RequestTimeout,
        ApiError::PayloadTooLarge,
        ApiError::UriTooLong,
        ApiError::UnsupportedMediaType("application/json"),
        ApiError::RateLimited(crate::app::Limited { retry_after_s: 1 }),
        ApiError::StorageUnavailable(String::new()),
        ApiError::Internal(String::new()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_value_is_listed_once_and_speaks_three_languages() {
        let mut values: Vec<_> = all_errors().into_iter().map(|(_, value, _)| value).collect();
        let listed = values.len();
        values.sort_unstable();
        values.dedup();
        assert_eq!(values.len(), listed);
        for error in samples() {
            let [pt, en, fr] =
                [Language::Pt, Language::En, Language::Fr].map(|l| message(&error, l));
            assert!(pt != en && en != fr && fr != pt, "{pt} {en} {fr}");
        }
        let table = include_str!("../../../../docs/api.md");
        for value in values {
            assert!(table.contains(&format!("\n| `{value}` |")), "{value} is not in docs/api.md");
        }
    }
}
