// What payers read on the merchant's page.

import type { Language } from "./options";

interface Texts {
  pay: string;
  wait: string;
  inWindow: string;
  show: string;
  close: string;
  confirming: string;
}

export const TEXTS: Record<Language, Texts> = {
  pt: {
    pay: "Pagar",
    wait: "A preparar o pagamento…",
    inWindow: "Continue o pagamento na outra janela",
    show: "Mostrar a janela",
    close: "Fechar a janela",
    confirming: "Estamos a confirmar o pagamento. Não pague outra vez.",
  },
  en: {
    pay: "Pay",
    wait: "Preparing the payment…",
    inWindow: "Continue the payment in the other window",
    show: "Show the window",
    close: "Close the window",
    confirming: "Confirming the payment. Do not pay again.",
  },
  fr: {
    pay: "Payer",
    wait: "Préparation du paiement…",
    inWindow: "Continuez le paiement dans l'autre fenêtre",
    show: "Afficher la fenêtre",
    close: "Fermer la fenêtre",
    confirming: "Confirmation du paiement. Ne payez pas à nouveau.",
  },
};
