//! What the mock ATM and the mock wallet say.

use crate::http::texts;

texts! {
    test: "TESTE: nenhum dinheiro é movimentado", "TEST: no money moves", "TEST : aucun argent n'est transféré";
    atm: "ATM de teste", "Test ATM", "Distributeur de test";
    entity: "Entidade", "Entity", "Entité";
    reference: "Referência", "Reference", "Référence";
    amount: "Montante", "Amount", "Montant";
    pay: "Pagar", "Pay", "Payer";
    paid: "Pago", "Paid", "Payé";
    invalid_reference: "Referência inválida", "Invalid reference", "Référence invalide";
    expired_reference: "Referência expirada", "Expired reference", "Référence expirée";
    wrong_amount: "Montante incorrecto", "Wrong amount", "Montant incorrect";
    already_paid: "Referência já paga", "Reference already paid", "Référence déjà payée";
    wallet: "Carteira de teste", "Test wallet", "Portefeuille de test";
    code: "Código", "Code", "Code";
    open: "Abrir", "Open", "Ouvrir";
    pay_to: "Pagamento a", "Payment to", "Paiement à";
    approve: "Autorizar", "Approve", "Autoriser";
    refuse: "Recusar", "Refuse", "Refuser";
    ignore: "Para ignorar o pedido, feche esta página.", "To ignore the request, close this page.", "Pour ignorer la demande, fermez cette page.";
    refused: "Recusado", "Refused", "Refusé";
    unconfirmed: "Por confirmar", "Not confirmed yet", "Pas encore confirmé";
    expired: "Este código já não é válido", "This code is no longer valid", "Ce code n'est plus valable";
    unknown_code: "Código desconhecido", "Unknown code", "Code inconnu";
}
