// Errors that say what to do.

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

export class SvcError extends Error {
  readonly code: SvcErrorCode;
  /** Trying again may help, and cannot pay twice: the payer had not seen an order yet. */
  readonly recoverable: boolean;
  /** Of the service's answer, for support. */
  readonly requestId: string | undefined;

  constructor(
    code: SvcErrorCode,
    message: string,
    more: { cause?: unknown; requestId?: string | undefined } = {},
  ) {
    super(`Svc: ${message}`);
    this.name = "SvcError";
    this.code = code;
    this.recoverable = code.startsWith("create_order");
    this.requestId = more.requestId;
    if (more.cause !== undefined) Object.assign(this, { cause: more.cause });
  }
}

export function warn(message: string): void {
  console.warn(`Svc: ${message}`);
}
