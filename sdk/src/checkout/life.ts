// One life of this page, from its loading to its leaving. What it still had on its way when it was left comes
// to the service later than its last word, and is not to be taken for a return.

let life = anew();

export function thisLife(): string {
  return life;
}

/** The life that ends. A browser may keep the page and show it again: that is another one. */
export function endLife(): string {
  const ended = life;
  life = anew();
  return ended;
}

function anew(): string {
  return crypto.getRandomValues(new Uint32Array(2)).join("-");
}
