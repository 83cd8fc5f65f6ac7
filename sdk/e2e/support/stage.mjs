// Everything a test needs: a service, a shop and a browser, started before a file's tests and ended
// after them.

import { after, before } from "node:test";
import { launch, payer } from "./browser.mjs";
import { checkoutUrl } from "./checkout.mjs";
import { startMerchant } from "./merchant.mjs";
import { startService } from "./service.mjs";

/** `seed`: how many orders the service's last month had. */
export function useStage({ seed } = {}) {
  const stage = {
    /** A new order, with its address. */
    async order(options = {}) {
      const order = await stage.service.createOrder({ merchant: stage.merchant, ...options });
      return { ...order, url: (query) => checkoutUrl(stage.service, order, query) };
    },
    payer: (options) => payer(stage.browser, options),
    /** A payer who looks at a new order; `query` is what the shop's button asked for. */
    async visit({ order: terms, query, ...options } = {}) {
      const [order, visitor] = await Promise.all([stage.order(terms), stage.payer(options)]);
      await visitor.page.goto(order.url(query));
      return { order, ...visitor };
    },
  };
  before(async () => {
    // Each is kept as soon as it is there: if another does not start, it is still ended.
    const keep = async (name, started) => {
      stage[name] = await started;
    };
    const starts = [
      keep("service", startService({ seed })),
      keep("merchant", startMerchant()),
      keep("browser", launch()),
    ];
    await Promise.allSettled(starts);
    await Promise.all(starts);
  });
  after(async () => {
    await stage.browser?.close();
    await Promise.all([stage.service?.stop(), stage.merchant?.stop()]);
  });
  return stage;
}
