// The seconds left to approve in the app.

import { page, say } from "./page";

const SAID_ALOUD_SECONDS = 30;
const DRIFT_SECONDS_MAX = 2;

let timer = 0;
let endsAt = 0;
let drawn = 0;
let heading = "";

/** `ended`: what to do when the time is up, since only the server knows how it went. */
export function startCountdown(ended: () => void): void {
  clearInterval(timer);
  const { main } = page();
  const text = main.querySelector<HTMLElement>("[data-seconds]");
  if (!text) return;
  heading = main.querySelector("h1")?.textContent ?? "";
  drawn = -1;
  endsAt = Date.now() + Number(text.dataset.seconds) * 1000;
  timer = setInterval(() => {
    const left = secondsLeft();
    // At zero it stays, unless the server's clock says otherwise.
    if (left === drawn) return;
    drawn = left;
    draw(text, left);
    if (left === SAID_ALOUD_SECONDS) say(text.textContent ?? "");
    if (left > 0) return;
    say(text.dataset.ended ?? "");
    ended();
  }, 1000);
}

/** The server's clock wins, but a second of delay on the way must not make the figure jump. */
export function correctCountdown(left: number): void {
  if (Math.abs(left - secondsLeft()) > DRIFT_SECONDS_MAX) endsAt = Date.now() + left * 1000;
}

function secondsLeft(): number {
  return Math.max(0, Math.round((endsAt - Date.now()) / 1000));
}

function draw(text: HTMLElement, left: number): void {
  const { main } = page();
  const { ended = "" } = text.dataset;
  text.textContent = (text.dataset.text ?? "").replace("{s}", String(left));
  const figure = main.querySelector(".seconds");
  if (figure) figure.textContent = String(left);
  main.querySelector(".left")?.setAttribute("stroke-dasharray", `${left} 90`);
  // Nobody is asked to authorise what may have been authorised, should the network be gone by then.
  const title = main.querySelector("h1");
  const words = left > 0 ? heading : ended;
  if (title && title.textContent !== words) title.textContent = words;
  for (const step of main.querySelectorAll<HTMLElement>(".lead, .steps")) step.hidden = left === 0;
}
