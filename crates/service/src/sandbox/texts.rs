//! What the mock ATM and the mock wallet say, in three languages.

use crate::http::Language;

pub(super) struct Texts {
    pub test: &'static str,
    pub atm: &'static str,
    pub entity: &'static str,
    pub reference: &'static str,
    pub amount: &'static str,
    pub pay: &'static str,
    pub paid: &'static str,
    pub invalid_reference: &'static str,
    pub expired_reference: &'static str,
    pub wrong_amount: &'static str,
    pub already_paid: &'static str,
    pub wallet: &'static str,
    pub code: &'static str,
    pub open: &'static str,
    pub pay_to: &'static str,
    pub approve: &'static str,
    pub refuse: &'static str,
    pub ignore: &'static str,
    pub refused: &'static str,
    pub unconfirmed: &'static str,
    pub expired: &'static str,
    pub unknown_code: &'static str,
}

impl Texts {
    pub(super) fn of(language: Language) -> &'static Self {
        match language {
            Language::Pt => &PT,
            Language::En => &EN,
            Language::Fr => &FR,
        }
    }
}

const PT: Texts = Texts {
    test: "TESTE: nenhum dinheiro é movimentado",
    atm: "Caixa automático de teste",
    entity: "Entidade",
    reference: "Referência",
    amount: "Montante",
    pay: "Pagar",
    paid: "Pago",
    invalid_reference: "Referência inválida",
    expired_reference: "Referência expirada",
    wrong_amount: "Montante incorrecto",
    already_paid: "Referência já paga",
    wallet: "Carteira de teste",
    code: "Código",
    open: "Abrir",
    pay_to: "Pagamento a",
    approve: "Autorizar",
    refuse: "Recusar",
    ignore: "Para ignorar o pedido, feche esta página.",
    refused: "Recusado",
    unconfirmed: "Por confirmar",
    expired: "Este código já não é válido",
    unknown_code: "Código desconhecido",
};

const EN: Texts = Texts {
    test: "TEST: no money moves",
    atm: "Test cash machine",
    entity: "Entity",
    reference: "Reference",
    amount: "Amount",
    pay: "Pay",
    paid: "Paid",
    invalid_reference: "Invalid reference",
    expired_reference: "Expired reference",
    wrong_amount: "Wrong amount",
    already_paid: "Reference already paid",
    wallet: "Test wallet",
    code: "Code",
    open: "Open",
    pay_to: "Payment to",
    approve: "Approve",
    refuse: "Refuse",
    ignore: "To ignore the request, close this page.",
    refused: "Refused",
    unconfirmed: "Not confirmed yet",
    expired: "This code is no longer valid",
    unknown_code: "Unknown code",
};

const FR: Texts = Texts {
    test: "TEST : aucun argent n'est transféré",
    atm: "Distributeur de test",
    entity: "Entité",
    reference: "Référence",
    amount: "Montant",
    pay: "Payer",
    paid: "Payé",
    invalid_reference: "Référence invalide",
    expired_reference: "Référence expirée",
    wrong_amount: "Montant incorrect",
    already_paid: "Référence déjà payée",
    wallet: "Portefeuille de test",
    code: "Code",
    open: "Ouvrir",
    pay_to: "Paiement à",
    approve: "Autoriser",
    refuse: "Refuser",
    ignore: "Pour ignorer la demande, fermez cette page.",
    refused: "Refusé",
    unconfirmed: "Pas encore confirmé",
    expired: "Ce code n'est plus valable",
    unknown_code: "Code inconnu",
};
