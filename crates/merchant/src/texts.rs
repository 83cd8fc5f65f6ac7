//! What the pages say, in three languages, and which of them a visitor reads.

use axum::http::{HeaderMap, header};

pub(crate) struct Texts {
    pub lang: &'static str,
    pub shop: &'static str,
    pub add: &'static str,
    /// Before the name of a product, for who hears the page.
    pub add_one: &'static str,
    pub take_one: &'static str,
    pub free: &'static str,
    pub cart: &'static str,
    pub empty: &'static str,
    pub total: &'static str,
    pub success: &'static str,
    pub success_text: &'static str,
    pub paid_text: &'static str,
    pub held_text: &'static str,
    pub pending: &'static str,
    pub pending_text: &'static str,
    /// Where no order is known, whose payment could be opened.
    pub pay_text: &'static str,
    pub confirming: &'static str,
    pub confirming_text: &'static str,
    pub approve_text: &'static str,
    pub open_payment: &'static str,
    /// Around a date.
    pub pay_by: &'static str,
    pub time_zone: &'static str,
    pub unknown: &'static str,
    pub unknown_text: &'static str,
    pub nowhere: &'static str,
    pub nowhere_text: &'static str,
    pub cancelled: &'static str,
    pub cancelled_text: &'static str,
    pub entity: &'static str,
    pub reference: &'static str,
    pub story: &'static str,
    pub reload: &'static str,
    pub back: &'static str,
    pub trouble: &'static str,
    pub no_button: &'static str,
    pub load_again: &'static str,
    pub sold_out: &'static str,
    pub no_script: &'static str,
    pub happenings: [(&'static str, &'static str); 7],
}

const LANGUAGES: [Texts; 3] = [
    Texts {
        lang: "pt",
        shop: "Loja Kianda",
        add: "Adicionar",
        add_one: "Adicionar:",
        take_one: "Retirar um:",
        free: "Em stock:",
        cart: "O seu cesto",
        empty: "O cesto está vazio.",
        total: "Total",
        success: "Obrigado!",
        success_text: "A encomenda segue assim que o serviço de pagamentos confirmar o pagamento.",
        paid_text: "O pagamento está confirmado e a encomenda segue.",
        held_text: "Recebemos o seu pagamento, mas temos de o verificar antes de enviar a encomenda. Não pague outra vez.",
        pending: "Falta pagar",
        pending_text: "Pague a referência no ATM, na app ou no banco online. Para a ver de novo, abra o pagamento.",
        pay_text: "Pague a referência no ATM, na app ou no banco online.",
        confirming: "A confirmar o pagamento",
        confirming_text: "Não pague outra vez. A encomenda segue assim que o pagamento for confirmado.",
        approve_text: "Abra o pagamento e autorize-o na app antes de o código expirar.",
        open_payment: "Abrir o pagamento",
        pay_by: "Pague até",
        time_zone: "hora de Luanda",
        unknown: "Encomenda não encontrada",
        unknown_text: "Esta loja não tem uma encomenda com este número.",
        nowhere: "Página não encontrada",
        nowhere_text: "Esta loja não tem uma página neste endereço.",
        cancelled: "Pagamento cancelado",
        cancelled_text: "O seu cesto continua aqui. Se já pagou, guarde o comprovativo: o dinheiro será devolvido.",
        entity: "Entidade",
        reference: "Referência",
        story: "Histórico da encomenda",
        reload: "Ver se há novidades",
        back: "Voltar à loja",
        trouble: "Não foi possível iniciar o pagamento. Tente de novo.",
        no_button: "O botão de pagamento não carregou. Verifique a ligação e recarregue a página.",
        load_again: "Recarregar a página",
        sold_out: "Alguns artigos do cesto já não têm stock. Recarregue a página e retire-os.",
        no_script: "Para pagar, active o JavaScript no navegador.",
        happenings: [
            ("created", "Encomenda criada"),
            ("reference", "Referência recebida do serviço"),
            ("webhook", "Webhook recebido e verificado"),
            ("query", "Estado consultado no serviço"),
            ("held", "Retida para verificação"),
            ("fulfilled", "Encomenda enviada"),
            ("failed", "O serviço de pagamentos recusou"),
        ],
    },
    Texts {
        lang: "en",
        shop: "Kianda Shop",
        add: "Add",
        add_one: "Add:",
        take_one: "Take one out:",
        free: "In stock:",
        cart: "Your cart",
        empty: "The cart is empty.",
        total: "Total",
        success: "Thank you!",
        success_text: "Your order leaves as soon as the payment service confirms the payment.",
        paid_text: "The payment is confirmed and your order is on its way.",
        held_text: "We received your payment, but have to check it before we send the order. Do not pay again.",
        pending: "Still to be paid",
        pending_text: "Pay the reference at an ATM, in the app or in online banking. Open the payment to see it again.",
        pay_text: "Pay the reference at an ATM, in the app or in online banking.",
        confirming: "Confirming the payment",
        confirming_text: "Do not pay again. The order is sent as soon as the payment is confirmed.",
        approve_text: "Open the payment and approve it in the app before the code expires.",
        open_payment: "Open the payment",
        pay_by: "Pay by",
        time_zone: "Luanda time",
        unknown: "Order not found",
        unknown_text: "This shop has no order with this number.",
        nowhere: "Page not found",
        nowhere_text: "This shop has no page at this address.",
        cancelled: "Payment cancelled",
        cancelled_text: "Your cart is still here. If you have paid, keep the proof: the money will be refunded.",
        entity: "Entity",
        reference: "Reference",
        story: "Order history",
        reload: "Check for updates",
        back: "Back to the shop",
        trouble: "The payment could not be started. Try again.",
        no_button: "The payment button did not load. Check your connection and reload the page.",
        load_again: "Reload the page",
        sold_out: "Some items in your cart are no longer in stock. Reload the page and take them out.",
        no_script: "To pay, switch JavaScript on in your browser.",
        happenings: [
            ("created", "Order created"),
            ("reference", "Reference received from the service"),
            ("webhook", "Webhook received and verified"),
            ("query", "Status queried at the service"),
            ("held", "Held for a check"),
            ("fulfilled", "Order sent"),
            ("failed", "The payment service refused"),
        ],
    },
    Texts {
        lang: "fr",
        shop: "Boutique Kianda",
        add: "Ajouter",
        add_one: "Ajouter :",
        take_one: "Retirer un :",
        free: "En stock :",
        cart: "Votre panier",
        empty: "Le panier est vide.",
        total: "Total",
        success: "Merci !",
        success_text: "La commande part dès que le service de paiement confirme le paiement.",
        paid_text: "Le paiement est confirmé et la commande part.",
        held_text: "Nous avons reçu votre paiement, mais devons le vérifier avant d'envoyer la commande. Ne payez pas à nouveau.",
        pending: "Reste à payer",
        pending_text: "Payez la référence au distributeur, dans l'app ou en banque en ligne. Pour la revoir, ouvrez le paiement.",
        pay_text: "Payez la référence au distributeur, dans l'app ou en banque en ligne.",
        confirming: "Confirmation du paiement",
        confirming_text: "Ne payez pas à nouveau. La commande part dès que le paiement est confirmé.",
        approve_text: "Ouvrez le paiement et autorisez-le dans l'app avant que le code n'expire.",
        open_payment: "Ouvrir le paiement",
        pay_by: "Payez avant le",
        time_zone: "heure de Luanda",
        unknown: "Commande introuvable",
        unknown_text: "Cette boutique n'a pas de commande avec ce numéro.",
        nowhere: "Page introuvable",
        nowhere_text: "Cette boutique n'a pas de page à cette adresse.",
        cancelled: "Paiement annulé",
        cancelled_text: "Votre panier est toujours là. Si vous avez payé, gardez le justificatif : vous serez remboursé.",
        entity: "Entité",
        reference: "Référence",
        story: "Historique de la commande",
        reload: "Voir s'il y a du nouveau",
        back: "Retour à la boutique",
        trouble: "Le paiement n'a pas pu être lancé. Réessayez.",
        no_button: "Le bouton de paiement n'a pas été chargé. Vérifiez la connexion et rechargez la page.",
        load_again: "Recharger la page",
        sold_out: "Des articles de votre panier ne sont plus en stock. Rechargez la page et retirez-les.",
        no_script: "Pour payer, activez JavaScript dans votre navigateur.",
        happenings: [
            ("created", "Commande créée"),
            ("reference", "Référence reçue du service"),
            ("webhook", "Webhook reçu et vérifié"),
            ("query", "État demandé au service"),
            ("held", "Retenue pour vérification"),
            ("fulfilled", "Commande envoyée"),
            ("failed", "Le service de paiement a refusé"),
        ],
    },
];

impl Texts {
    /// What happened, in words.
    pub(crate) fn happening(&self, what: &str) -> &'static str {
        self.happenings.iter().find(|(code, _)| *code == what).map_or("?", |(_, text)| text)
    }
}

/// As the address says, else as the browser asks, else Portuguese.
pub(crate) fn language(query: &str, headers: &HeaderMap) -> (usize, &'static Texts) {
    let accepted = headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
    let place = place_of(&value(query, "lang")).or_else(|| first_known(accepted?)).unwrap_or(0);
    (place, &LANGUAGES[place])
}

/// The language that the address names.
pub(crate) fn named_language(query: &str) -> Option<&'static str> {
    place_of(&value(query, "lang")).map(|place| LANGUAGES[place].lang)
}

/// Of the languages that a browser names, which it does in the order of its reader's wishes.
fn first_known(accepted: &str) -> Option<usize> {
    let named = accepted.split(',').map(|one| one.split_once(';').unwrap_or((one, "")));
    let wanted = named.filter(|(_, quality)| !matches!(quality.trim(), "q=0" | "q=0.0"));
    wanted.map(|(tag, _)| tag.trim()).find_map(place_of)
}

/// `fr-CA` and `FR` are French.
fn place_of(tag: &str) -> Option<usize> {
    let language = tag.split('-').next().unwrap_or_default();
    LANGUAGES.iter().position(|texts| language.eq_ignore_ascii_case(texts.lang))
}

/// A value of the address's query; empty when it is not there.
pub(crate) fn value(query: &str, name: &str) -> String {
    form_urlencoded::parse(query.as_bytes())
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.into_owned())
        .unwrap_or_default()
}
