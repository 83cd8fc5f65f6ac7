// One life of this page, from its loading to its leaving. What it still had on its way when it was left comes
// to the service later than its last word, and is not to be taken for a return.

let life = anew();

/** The browser kept the page, and shows it again. */
export function liveAgain(): void {
  life = anew();
}

export function thisLife(): string {
  return life;
}

function anew(): string {
  return crypto.getRandomValues(new Uint32Array(2)).join("-");
}
