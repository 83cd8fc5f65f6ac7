// What merchants see: the types of spec 4.5.

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

export type SvcErrorCode =
  | "invalid_key"
  | "invalid_option"
  | "container_not_found"
  | "create_order_failed"
  | "create_order_timeout"
  | "invalid_reference"
  | "order_not_found"
  | "network"
  | "callback_failed";

export declare class SvcError extends Error {
  readonly code: SvcErrorCode;
  /** Trying again may help, and cannot pay twice: the payer had not seen an order yet. */
  readonly recoverable: boolean;
  /** Of the service's answer, for support. */
  readonly requestId: string | undefined;
}

/** As a module: the address of the service is given. */
export declare function Svc(publishableKey: string, options: { serviceUrl: string }): SvcInstance;
