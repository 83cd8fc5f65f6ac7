// Elements with a style of their own, under the strictest content security policy: nothing here is
// inline code or an inline style attribute.

/** A shadow root: the page's styles stay out, ours stay in. */
export function isolate(host: HTMLElement, css: string): ShadowRoot {
  const root = host.attachShadow({ mode: "open" });
  try {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(css);
    root.adoptedStyleSheets = [sheet];
  } catch {
    // An old browser. Where a strict policy forbids this too, it is plain.
    root.append(make("style", { textContent: css }));
  }
  return root;
}

/** Over the whole page, in whatever browser: the place does not depend on a style sheet. */
export function cover(host: HTMLElement, css: string): ShadowRoot {
  host.style.cssText = "position:fixed;top:0;right:0;bottom:0;left:0;z-index:2147483647";
  return isolate(host, css);
}

export function make<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  members: Partial<HTMLElementTagNameMap[Name]> = {},
  ...children: Node[]
): HTMLElementTagNameMap[Name] {
  const element = Object.assign(document.createElement(name), members);
  element.append(...children);
  return element;
}
