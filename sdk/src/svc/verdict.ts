// How a payment ended for the merchant's page. Pure: the same news, in whatever order and from
// whichever side, give the same end.

import type { Payment } from "./public";

export interface View {
  screen: string;
  payment: Payment;
}

export type Verdict = "approve" | "pending" | "cancel";

/** Screens on which money may be moving: closing the window then decides nothing. */
const MOVING = ["waiting", "confirming"];

export function verdict(
  view: View | undefined,
  gone: boolean,
  waitedEnough: boolean,
): Verdict | undefined {
  if (!view) return gone ? "cancel" : undefined;
  const { paymentStatus, data } = view.payment;
  if (paymentStatus === "CON") return "approve";
  if (paymentStatus === "CAN") return "cancel";
  if (!gone) return undefined;
  // What the payer took along, a reference or a code, can still be paid. (An older service told of a code by
  // its screen only.)
  if (data.expiresAt || view.screen === "code") return "pending";
  if (MOVING.includes(view.screen)) return waitedEnough ? "pending" : undefined;
  return "cancel";
}

/** What came from outside is a view, or it is nothing. */
export function asView(screen: unknown, payment: unknown): View | undefined {
  const given = payment as Payment | null;
  const right =
    typeof screen === "string" &&
    given &&
    ["PEN", "CON", "CAN"].includes(given.paymentStatus) &&
    typeof given.orderId === "string" &&
    typeof given.data === "object" &&
    given.data !== null;
  return right ? { screen: screen as string, payment: given } : undefined;
}
