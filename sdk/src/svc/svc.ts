// `Svc(key).generateButton(config).render(container)` (spec 4.5).

import { renderButton } from "./button";
import { SvcError, warn } from "./errors";
import { parseKey, parseOptions } from "./options";
import type { SvcInstance } from "./public";

export function Svc(publishableKey: unknown, service: string): SvcInstance {
  const key = parseKey(publishableKey);
  return {
    generateButton(config) {
      const options = parseOptions(config);
      return {
        async render(container) {
          return renderButton(find(container), service, key, options);
        },
      };
    },
  };
}

function find(container: unknown): Element {
  if (container instanceof Element) return container;
  if (typeof container !== "string" || container === "") {
    throw new SvcError("container_not_found", 'render needs a selector ("#pay") or an element');
  }
  let found: NodeListOf<Element>;
  try {
    found = document.querySelectorAll(container);
  } catch {
    throw new SvcError("container_not_found", `"${container}" is not a CSS selector`);
  }
  const [first] = found;
  if (!first) {
    throw new SvcError(
      "container_not_found",
      `nothing on the page matches "${container}"; render after the element exists`,
    );
  }
  if (found.length > 1) warn(`"${container}" matches ${found.length} elements; the first is used`);
  return first;
}
