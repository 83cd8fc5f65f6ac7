// What merchants see: the types of spec 4.5.

import type { SvcError } from "./errors";

export type PaymentMethod = "FPMCXEXPRSS" | "FPSOLPGEXT" | "FPSOLPG";

/** The payment as callbacks get it. It is news for the page, never a proof: that is the webhook. */
export interface Payment {
  orderId: string;
  externalTransactionId: string;
  referenceNumber: string;
  paymentStatus: "PEN" | "CON" | "CAN";
  method: PaymentMethod;
  amount: number;
  currency: "AOA";
  createdAt: string;
  /** Of a bank reference; empty texts otherwise. */
  data: {
    paymentReference: string;
    /** `name` is always an empty text today. */
    entity: { number: string; name: string };
    expiresAt?: string;
  };
}

export interface CallbackData {
  payment: Payment;
}

export interface CallbackActions {
  /** Runs `fn` once the payer's window is closed; at once if it is closed already. */
  onPopupWindowClosed(fn: () => unknown): void;
}

export interface ButtonConfig {
  /** Gives the `referenceNumber` your backend got. */
  createOrder: () => Promise<string> | string;
  onApprove?: (data: CallbackData, actions: CallbackActions) => unknown;
  onPending?: (data: CallbackData, actions: CallbackActions) => unknown;
  onCancel?: () => unknown;
  onError?: (error: SvcError) => unknown;
  options?: {
    style?: { width?: string; shape?: "pill" | "rect" | "sharp" };
    config?: { lang?: "pt" | "en" | "fr"; showAmount?: boolean };
    paymentConfig?: {
      theme?: "light" | "dark" | "auto";
      allowedPaymentMethods?: PaymentMethod[];
      /** `false` closes the window as soon as the payment is decided. */
      showUIOfProcessingInfo?: boolean;
      /** Minutes, 1 to 43200. */
      referencePaymentLifeSpan?: number;
    };
  };
}

export interface RenderedButton {
  /** Takes the button away and ends its flow without another callback. */
  destroy(): void;
}

export interface PaymentButton {
  render(container: string | Element): Promise<RenderedButton>;
}

export interface SvcInstance {
  generateButton(config: ButtonConfig): PaymentButton;
}
