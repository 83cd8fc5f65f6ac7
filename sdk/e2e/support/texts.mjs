// What payers must read on each screen. Written out here, so that a changed text is a changed promise.

export const LANGUAGES = ["pt", "en", "fr"];

/** Portuguese is that of Angola. */
export const HTML_LANG = { pt: "pt-AO", en: "en", fr: "fr" };

export const HEADINGS = {
  choose: {
    pt: "Como quer pagar?",
    en: "How do you want to pay?",
    fr: "Comment voulez-vous payer\u00a0?",
  },
  phone: { pt: "Pagar com o telemóvel", en: "Pay with your phone", fr: "Payer avec votre mobile" },
  waiting: {
    pt: "Abra a app e autorize o pagamento",
    en: "Open the app and approve the payment",
    fr: "Ouvrez l'app et autorisez le paiement",
  },
  refused: {
    pt: "Pagamento não autorizado",
    en: "Payment not approved",
    fr: "Paiement non autorisé",
  },
  reference: {
    pt: "Pague com esta referência",
    en: "Pay with this reference",
    fr: "Payez avec cette référence",
  },
  code: { pt: "Pagar com svc", en: "Pay with svc", fr: "Payer avec svc" },
  confirming: { pt: "Estamos a confirmar", en: "Still confirming", fr: "Confirmation en cours" },
  paid: { pt: "Pagamento confirmado", en: "Payment confirmed", fr: "Paiement confirmé" },
  cancelled: { pt: "Pagamento cancelado", en: "Payment cancelled", fr: "Paiement annulé" },
  expired: { pt: "O prazo terminou", en: "Expired", fr: "Délai dépassé" },
  down: { pt: "Serviço indisponível", en: "Service unavailable", fr: "Service indisponible" },
  missing: { pt: "Página não encontrada", en: "Page not found", fr: "Page introuvable" },
};

/** A sentence that the screen cannot do without. */
export const SENTENCES = {
  phoneError: {
    pt: "Introduza 9 dígitos, a começar por 9",
    en: "Enter 9 digits starting with 9",
    fr: "Entrez 9 chiffres commençant par 9",
  },
  refused: {
    pt: "Saldo insuficiente. Tente com outro cartão",
    en: "Insufficient balance. Try another card",
    fr: "Solde insuffisant. Essayez une autre carte",
  },
  confirming: {
    pt: "Não pague outra vez",
    en: "Do not pay again",
    fr: "Ne payez pas à nouveau",
  },
  reference: {
    pt: "Pague no ATM, na app Multicaixa Express ou no banco online",
    en: "Pay at an ATM, in the Multicaixa Express app or online banking",
    fr: "Payez au distributeur, dans l'app Multicaixa Express ou en banque en ligne",
  },
  paid: {
    pt: "Comprovativo de pagamento. Não serve de factura.",
    en: "Proof of payment. Not an invoice.",
    fr: "Justificatif de paiement. Ne vaut pas facture.",
  },
  waitEnded: {
    pt: "O prazo terminou. Estamos a verificar; não pague outra vez.",
    en: "The time has run out. We are checking; do not pay again.",
    fr: "Le délai est dépassé. Nous vérifions\u00a0; ne payez pas à nouveau.",
  },
  cancelling: { pt: "A cancelar", en: "Cancelling", fr: "Annulation en cours" },
  offline: {
    pt: "Sem ligação. Tentamos de novo assim que a ligação voltar.",
    en: "No connection. We try again as soon as it is back.",
    fr: "Pas de connexion. Nous réessayons dès qu'elle revient.",
  },
  backOnline: {
    pt: "A ligação voltou. Toque outra vez: não pagará duas vezes.",
    en: "You are connected again. Tap once more: you will not pay twice.",
    fr: "La connexion est revenue. Appuyez encore une fois\u00a0: vous ne paierez pas deux fois.",
  },
  slow: {
    pt: "A ligação está lenta. Aguarde, não toque outra vez.",
    en: "The connection is slow. Please wait, do not tap again.",
    fr: "La connexion est lente. Attendez, n'appuyez pas à nouveau.",
  },
  unsent: {
    pt: "Sem ligação. Assim que a ligação voltar, tente outra vez: não pagará duas vezes.",
    en: "No connection. Once it is back, try again: you will not pay twice.",
    fr: "Pas de connexion. Dès qu'elle revient, réessayez\u00a0: vous ne paierez pas deux fois.",
  },
};

/** 15,000 kwanza as each language writes them. */
export const AMOUNT = {
  pt: "15.000,00\u00a0Kz",
  en: "Kz\u00a015,000",
  fr: "15\u202f000\u00a0Kz",
};
