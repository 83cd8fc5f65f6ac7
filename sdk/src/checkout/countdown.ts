// The seconds left to approve in the app.

import { page, say } from "./page";

const SAID_ALOUD_SECONDS = 30;
const DRIFT_SECONDS_MAX = 2;

let timer = 0;
let endsAt = 0;

/** `ended`: what to do when the time is up, since only the server knows how it went. */
export function startCountdown(ended: () => void): void {
  clearInterval(timer);
  const text = page().main.querySelector<HTMLElement>("[data-seconds]");
  if (!text) return;
  endsAt = Date.now() + Number(text.dataset.seconds) * 1000;
  timer = setInterval(() => {
    const left = secondsLeft();
    draw(text, left);
    if (left === SAID_ALOUD_SECONDS) say(text.textContent ?? "");
    if (left > 0) return;
    clearInterval(timer);
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
  text.textContent = (text.dataset.text ?? "").replace("{s}", String(left));
  const figure = main.querySelector(".seconds");
  if (figure) figure.textContent = String(left);
  main.querySelector(".left")?.setAttribute("stroke-dasharray", `${left} 90`);
}
