//! The verdict table in Portuguese, English and French.

use super::case::{Case, Wanted};
use super::finding::Finding;
use super::judge::Fault;
use crate::forms::Notation;
use crate::lang::{Lang, Text};

impl Case {
    pub(super) fn text(self) -> Text {
        match self {
            Self::Valid => ["evento válido", "valid event", "événement valide"],
            Self::Duplicate => ["o mesmo outra vez", "the same again", "le même encore"],
            Self::CancelAfterPaid => ["CAN depois de CON", "CAN after CON", "CAN après CON"],
            Self::PendingAfterPaid => ["PEN depois de CON", "PEN after CON", "PEN après CON"],
            Self::Cancelled => ["cancelamento", "cancellation", "annulation"],
            Self::PaidAfterCancelled => ["CON depois de CAN", "CON after CAN", "CON après CAN"],
            Self::Parallel => {
                ["20 iguais ao mesmo tempo", "20 the same at once", "20 pareils à la fois"]
            }
            Self::OddFormat => [
                "espaços e ordem invulgares",
                "odd spacing and key order",
                "espaces et ordre inhabituels",
            ],
            Self::OtherAmount => [
                "pago com outro montante",
                "paid with another amount",
                "payée avec un autre montant",
            ],
            Self::PendingFirst => ["PEN", "PEN", "PEN"],
            Self::UnknownOrder => ["encomenda desconhecida", "unknown order", "commande inconnue"],
            Self::UnknownEvent => ["evento desconhecido", "unknown event", "événement inconnu"],
            Self::UnknownStatus => ["estado desconhecido", "unknown status", "état inconnu"],
            Self::SignedNonsense => {
                ["assinado, mas não é JSON", "signed, but not JSON", "signé, mais pas du JSON"]
            }
            Self::MissingSignature => ["sem assinatura", "no signature", "sans signature"],
            Self::EmptySignature => ["assinatura vazia", "empty signature", "signature vide"],
            Self::ShortSignature => ["63 dígitos", "63 digits", "63 chiffres"],
            Self::LongSignature => ["65 dígitos", "65 digits", "65 chiffres"],
            Self::NotHex => ["não hexadecimal", "not hexadecimal", "pas hexadécimal"],
            Self::HalfRight => {
                ["só a primeira metade certa", "first half right only", "première moitié juste"]
            }
            Self::Capitals => ["em maiúsculas", "in upper case", "en majuscules"],
            Self::Prefixed => ["com sha256=", "with sha256=", "avec sha256="],
            Self::Base64 => ["em base64", "in base64", "en base64"],
            Self::OtherSecret => ["outro segredo", "another secret", "autre secret"],
            Self::ChangedBody => ["montante alterado", "amount changed", "montant changé"],
            Self::ReencodedBody => ["JSON escrito de novo", "JSON written again", "JSON réécrit"],
            Self::AddedLineBreak => {
                ["quebra de linha a mais", "line break added", "saut de ligne en plus"]
            }
            Self::UnsignedNonsense => {
                ["nem assinado nem JSON", "neither signed nor JSON", "ni signé ni JSON"]
            }
            Self::InTime => {
                ["em menos de 5 segundos", "in under 5 seconds", "en moins de 5 secondes"]
            }
        }
    }
}

impl Fault {
    pub(super) fn say(&self, lang: Lang) -> String {
        match self {
            Self::Answer { got, wanted } => {
                let wanted = match wanted {
                    Wanted::Taken => "200",
                    Wanted::Refused => "401",
                    Wanted::Unreadable => "422",
                };
                let text =
                    ["respondeu {}, devia ser", "answered {}, should be", "a répondu {}, il faut"];
                format!("{} {wanted}", lang.of(text).replace("{}", &got.to_string()))
            }
            Self::NoAnswer(silence) => {
                format!("{}: {silence}", lang.of(["sem resposta", "no answer", "pas de réponse"]))
            }
            Self::Slow(took) => {
                let text = ["demorou {} s", "took {} s", "a mis {} s"];
                lang.of(text).replace("{}", &format!("{:.1}", took.as_secs_f64()))
            }
            Self::Effect { is, wanted } => {
                let text =
                    ["ficou {}, devia ser", "became {}, should be", "est devenu {}, il faut"];
                format!("{} {}", lang.of(text).replace("{}", is.code()), wanted.code())
            }
            Self::MadeUpOrder => lang
                .of(["criou uma encomenda", "made an order up", "a inventé une commande"])
                .to_owned(),
            Self::Counted(count) => {
                let text = ["fornecida {} vezes", "fulfilled {} times", "livrée {} fois"];
                lang.of(text).replace("{}", &count.to_string())
            }
            Self::Fulfilled => lang
                .of([
                    "fornecida, devia ficar retida",
                    "fulfilled, should be held",
                    "livrée, à retenir",
                ])
                .to_owned(),
        }
    }
}

impl Finding {
    /// What is wrong and what to do.
    pub(super) fn say(self, lang: Lang) -> String {
        match self {
            Self::Computes(form) => {
                let intro = [
                    "O handler recusa eventos válidos porque calcula outra assinatura",
                    "Your handler refuses genuine events because it computes another signature",
                    "Le handler refuse des événements valides car il calcule une autre signature",
                ];
                format!("{}: {}.", lang.of(intro), lang.of(form.text()))
            }
            Self::NotA401(status) => {
                let text = [
                    "Assinaturas erradas são recusadas com {}: o contrato quer 401.",
                    "Wrong signatures are refused with {}: the contract wants 401.",
                    "Les mauvaises signatures sont refusées par {} : le contrat veut 401.",
                ];
                lang.of(text).replace("{}", &status.to_string())
            }
            Self::Refuses(status) => {
                let text = [
                    "Um evento válido é recusado com {}: veja o registo do handler.",
                    "A genuine event is refused with {}: look into the handler's log.",
                    "Un événement valide est refusé par {} : voyez le journal du handler.",
                ];
                lang.of(text).replace("{}", &status.to_string())
            }
            other => lang.of(other.text()).to_owned(),
        }
    }

    fn text(self) -> Text {
        match self {
            // Said above, with what was seen.
            Self::Computes(_) | Self::NotA401(_) | Self::Refuses(_) => ["", "", ""],
            Self::OtherSecret => [
                "O handler e esta consola têm segredos diferentes: compare ambos com o que svc demo ou svc partner create mostrou.",
                "Your handler and this shell have different secrets: compare both with what svc demo or svc partner create printed.",
                "Le handler et ce terminal ont des secrets différents : comparez les deux avec ce que svc demo ou svc partner create a affiché.",
            ],
            Self::Expects(Notation::Base64) => [
                "O handler espera a assinatura em base64: são 64 dígitos hexadecimais minúsculos.",
                "Your handler expects the signature in base64: it is 64 lower-case hex digits.",
                "Le handler attend la signature en base64 : ce sont 64 chiffres hexadécimaux minuscules.",
            ],
            Self::Expects(Notation::Prefixed) => [
                "O handler espera «sha256=» antes da assinatura: o cabeçalho tem só os 64 dígitos.",
                "Your handler expects sha256= before the signature: the header has the 64 digits alone.",
                "Le handler attend « sha256= » devant la signature : l'en-tête n'a que les 64 chiffres.",
            ],
            Self::Expects(Notation::UpperCase | Notation::Hex) => [
                "O handler espera maiúsculas: os dígitos hexadecimais são minúsculos.",
                "Your handler expects upper case: the hex digits are lower case.",
                "Le handler attend des majuscules : les chiffres hexadécimaux sont minuscules.",
            ],
            Self::Login => [
                "É exigido um início de sessão antes do handler (WWW-Authenticate): deixe este caminho passar; a assinatura protege-o.",
                "A login stands in front of the handler (WWW-Authenticate): let this path through; the signature protects it.",
                "Une connexion est exigée devant le handler (WWW-Authenticate) : laissez passer ce chemin ; la signature le protège.",
            ],
            Self::Forbidden => [
                "403: um filtro ou a protecção CSRF está à frente do handler. Isente este caminho; a assinatura protege-o.",
                "403: a filter or CSRF protection stands in front of the handler. Exempt this path; the signature protects it.",
                "403 : un filtre ou une protection CSRF est devant le handler. Exemptez ce chemin ; la signature le protège.",
            ],
            Self::NotFound => [
                "404 a um evento válido: o caminho está errado, ou o handler responde assim a encomendas que não conhece (devia ser 200).",
                "404 to a genuine event: the path is wrong, or the handler answers so for orders it does not know (it should be 200).",
                "404 à un événement valide : le chemin est faux, ou le handler répond ainsi aux commandes inconnues (il faut 200).",
            ],
            Self::MethodNotAllowed => [
                "405: esta rota não aceita POST.",
                "405: this route takes no POST.",
                "405 : cette route n'accepte pas POST.",
            ],
            Self::Redirects => [
                "Um redireccionamento: o serviço não o segue. Dê o endereço final (https, www, barra no fim).",
                "A redirect: the service does not follow it. Give the final address (https, www, trailing slash).",
                "Une redirection : le service ne la suit pas. Donnez l'adresse finale (https, www, barre finale).",
            ],
            Self::Breaks => [
                "O handler falha (5xx) com um evento válido: veja o registo dele.",
                "Your handler breaks (5xx) on a genuine event: look into its log.",
                "Le handler échoue (5xx) sur un événement valide : voyez son journal.",
            ],
            Self::AcceptsAnything => [
                "O handler aceita qualquer assinatura: qualquer pessoa pode dar encomendas como pagas. Verifique x-svc-content-token antes de tudo.",
                "Your handler accepts any signature: anybody can report orders as paid. Verify x-svc-content-token before anything else.",
                "Le handler accepte n'importe quelle signature : n'importe qui peut déclarer une commande payée. Vérifiez x-svc-content-token avant tout.",
            ],
            Self::AcceptsMissing => [
                "Um evento sem assinatura é aceite: um cabeçalho ausente conta como vazio, e vazio é errado (401).",
                "An event without a signature is accepted: an absent header counts as empty, and empty is wrong (401).",
                "Un événement sans signature est accepté : un en-tête absent compte comme vide, et vide est faux (401).",
            ],
            Self::ComparesPart => [
                "Só uma parte da assinatura é comparada: compare os 64 dígitos, e recuse outro comprimento.",
                "Only a part of the signature is compared: compare all 64 digits, and refuse another length.",
                "Une partie seulement de la signature est comparée : comparez les 64 chiffres, et refusez une autre longueur.",
            ],
            Self::IgnoresCase => [
                "Maiúsculas e minúsculas não se distinguem: há uma só forma, 64 dígitos minúsculos.",
                "Upper and lower case are not told apart: there is one form only, 64 lower-case digits.",
                "Majuscules et minuscules ne sont pas distinguées : il n'y a qu'une forme, 64 chiffres minuscules.",
            ],
            Self::AcceptsNotation => [
                "Aceita a assinatura também noutra escrita (sha256= ou base64): há uma só forma.",
                "The signature is accepted in another notation too (sha256= or base64): there is one form only.",
                "La signature est acceptée aussi sous une autre forme (sha256= ou base64) : il n'y en a qu'une.",
            ],
            Self::HashesOtherBytes => [
                "A assinatura não é calculada sobre os bytes que chegaram: um corpo alterado é aceite. Leia o corpo em bruto antes de qualquer parser.",
                "The signature is not computed over the bytes that came: a changed body is accepted. Read the raw body before any parser.",
                "La signature n'est pas calculée sur les octets reçus : un corps modifié est accepté. Lisez le corps brut avant tout parseur.",
            ],
            Self::Trims => [
                "O corpo é aparado antes do cálculo (trim): use todos os bytes.",
                "The body is trimmed before it is hashed: use every byte.",
                "Le corps est rogné avant le calcul (trim) : prenez tous les octets.",
            ],
            Self::ActsDespiteRefusal => [
                "Responde 401 e mesmo assim altera a encomenda: verifique antes de fazer seja o que for.",
                "It answers 401 and changes the order all the same: verify before doing anything.",
                "Il répond 401 et modifie quand même la commande : vérifiez avant de faire quoi que ce soit.",
            ],
            Self::ParsesFirst => [
                "O JSON é lido antes de a assinatura ser verificada: o que não é JSON nem está assinado devia dar 401.",
                "The JSON is parsed before the signature is verified: what is neither JSON nor signed should be a 401.",
                "Le JSON est lu avant que la signature soit vérifiée : ce qui n'est ni JSON ni signé doit donner 401.",
            ],
            Self::NoEffect => [
                "Um evento aceite não altera a encomenda: guarde o estado antes de responder 200.",
                "An accepted event does not change the order: store the state before answering 200.",
                "Un événement accepté ne change pas la commande : enregistrez l'état avant de répondre 200.",
            ],
            Self::OverwritesFinal => [
                "Um estado final é alterado: CON e CAN são finais. Mude só a partir de PEN (update … where status = 'PEN').",
                "A final state is overwritten: CON and CAN are final. Change from PEN only (update … where status = 'PEN').",
                "Un état final est écrasé : CON et CAN sont finaux. Ne changez qu'à partir de PEN (update … where status = 'PEN').",
            ],
            Self::RefusesDuplicates => [
                "Uma repetição não recebe 200: então o serviço repete-a durante 35 dias.",
                "A repetition does not get a 200: so the service repeats it for 35 days.",
                "Une répétition ne reçoit pas 200 : alors le service la répète pendant 35 jours.",
            ],
            Self::FailsInParallel => [
                "Vinte cópias ao mesmo tempo não recebem todas 200: faça a transição a partir de PEN num só comando da base de dados.",
                "Twenty copies at once do not all get a 200: make the transition from PEN in one statement of your database.",
                "Vingt copies à la fois ne reçoivent pas toutes 200 : faites la transition depuis PEN en une seule instruction de la base.",
            ],
            Self::FulfilsTwice => [
                "A mesma encomenda é fornecida mais de uma vez: deixe o número de linhas do update decidir quem fornece.",
                "The same order is fulfilled more than once: let the row count of the update decide who fulfils it.",
                "La même commande est livrée plus d'une fois : laissez le nombre de lignes de l'update décider qui livre.",
            ],
            Self::IgnoresAmount => [
                "Fornece uma encomenda paga com outro montante: compare o montante do evento com o do seu registo, e retenha-a.",
                "An order paid with another amount is fulfilled: compare the event's amount with your record's, and hold it.",
                "Une commande payée avec un autre montant est livrée : comparez le montant de l'événement à celui de votre enregistrement, et retenez-la.",
            ],
            Self::RefusesOtherAmount => [
                "Um evento com outro montante não recebe 200, e o serviço insiste durante 35 dias: guarde, retenha e avise alguém.",
                "An event with another amount does not get a 200, and the service insists for 35 days: store, hold and tell somebody.",
                "Un événement d'un autre montant ne reçoit pas 200, et le service insiste 35 jours : enregistrez, retenez, prévenez.",
            ],
            Self::RefusesOddFormat => [
                "Um evento assinado com espaços ou ordem invulgares é recusado: qualquer JSON com o mesmo conteúdo serve.",
                "A signed event with odd spacing or key order is refused: any JSON of the same content will do.",
                "Un événement signé aux espaces ou à l'ordre inhabituels est refusé : tout JSON de même contenu convient.",
            ],
            Self::RefusesUnknownOrder => [
                "Uma encomenda desconhecida devia receber 200 sem que nada mude; assim o serviço insiste durante 35 dias.",
                "An unknown order should get a 200 and change nothing; as it is the service insists for 35 days.",
                "Une commande inconnue doit recevoir 200 sans rien changer ; sinon le service insiste pendant 35 jours.",
            ],
            Self::MakesUpOrders => [
                "Uma encomenda desconhecida passa a existir: sem registo, nada muda.",
                "An unknown order comes into being: without a record nothing changes.",
                "Une commande inconnue est créée : sans enregistrement, rien ne change.",
            ],
            Self::RefusesUnknownEvent => [
                "Um evento ou estado desconhecido devia receber 200 e ser ignorado.",
                "An unknown event or status should get a 200 and be ignored.",
                "Un événement ou un état inconnu doit recevoir 200 et être ignoré.",
            ],
            Self::ActsOnUnknownEvent => [
                "Um evento ou estado desconhecido altera a encomenda: olhe para «event» e «paymentStatus» antes de agir.",
                "An unknown event or status changes the order: look at event and paymentStatus before you act.",
                "Un événement ou un état inconnu change la commande : regardez « event » et « paymentStatus » avant d'agir.",
            ],
            Self::BreaksOnNonsense => [
                "Um corpo assinado que não é JSON faz o handler falhar: responda 422.",
                "A signed body that is not JSON breaks the handler: answer 422.",
                "Un corps signé qui n'est pas du JSON fait échouer le handler : répondez 422.",
            ],
            Self::SwallowsNonsense => [
                "Um corpo assinado que não é JSON é aceite em silêncio: responda 422 e avise alguém.",
                "A signed body that is not JSON is taken in silence: answer 422 and tell somebody.",
                "Un corps signé qui n'est pas du JSON est accepté en silence : répondez 422 et prévenez quelqu'un.",
            ],
            Self::Slow => [
                "A resposta demora 5 segundos ou mais, e o serviço já desistiu: guarde, responda, trabalhe depois.",
                "The answer takes 5 seconds or more, and the service has given up: store, answer, work later.",
                "La réponse met 5 secondes ou plus, et le service a renoncé : enregistrez, répondez, travaillez après.",
            ],
        }
    }
}
