// The charts of the first page. Their figures are also there as a table.

import uPlot from "uplot";

interface Figures {
  at: number[];
  orders: number[];
  confirmed: number[];
  cancelled: number[];
  attempts: number[];
  failures: number[];
}

const HEIGHT_PX = 220;
/** By what a line tells: what is bad is red, and what is good green. */
const COLOURS: Record<keyof Figures, string> = {
  at: "--chart-3",
  orders: "--chart-3",
  confirmed: "--chart-2",
  cancelled: "--chart-1",
  attempts: "--chart-3",
  failures: "--chart-1",
};
let drawn: uPlot[] = [];

export function startCharts(): void {
  drawCharts();
  document.addEventListener("htmx:afterSwap", drawCharts);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawCharts);
  addEventListener("resize", () => {
    for (const chart of drawn) {
      const width = chart.root.parentElement?.clientWidth ?? chart.width;
      if (width !== chart.width) chart.setSize({ width, height: HEIGHT_PX });
    }
  });
}

function drawCharts(): void {
  for (const chart of drawn) chart.destroy();
  drawn = [];
  const data = document.getElementById("figures");
  if (!data?.textContent) return;
  const figures = JSON.parse(data.textContent) as Figures;
  for (const place of document.querySelectorAll<HTMLElement>("[data-chart]")) {
    drawn.push(draw(place, figures));
  }
}

function draw(place: HTMLElement, figures: Figures): uPlot {
  const names = (place.dataset.lines ?? "").split(",") as (keyof Figures)[];
  const labels = (place.dataset.labels ?? "").split(",");
  const colours = getComputedStyle(document.documentElement);
  const ink = colours.getPropertyValue("--quiet").trim();
  const grid = { stroke: colours.getPropertyValue("--line").trim(), width: 1 };
  const series = names.map((name, place) => ({
    label: labels[place] ?? "",
    stroke: colours.getPropertyValue(COLOURS[name]).trim(),
    width: 2,
    points: { show: false },
    value: (_chart: uPlot, figure: number | null) => String(figure ?? ""),
  }));
  const days = ((figures.at[figures.at.length - 1] ?? 0) - (figures.at[0] ?? 0)) / 86_400;
  const chart = new uPlot(
    {
      width: place.clientWidth,
      height: HEIGHT_PX,
      tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Africa/Luanda"),
      axes: [
        { stroke: ink, grid, values: (_chart, at) => at.map((one) => moment(one, days > 2)) },
        { stroke: ink, grid, size: 44 },
      ],
      scales: { y: { range: (_chart, _min, max) => [0, Math.max(1, max * 1.1)] } },
      series: [
        {
          label: place.dataset.when ?? "",
          value: (_chart, at) => (at ? moment(at, days > 8) : ""),
        },
        ...series,
      ],
    },
    [figures.at, ...names.map((name) => figures[name])],
    place,
  );
  return chart;
}

/** A day, or a time of a day, in Luanda; an hour ahead of UTC all year. */
function moment(at: number, wholeDay: boolean): string {
  const [date = "", time = ""] = new Date((at + 3_600) * 1000).toISOString().split("T");
  return wholeDay ? `${date.slice(8)}/${date.slice(5, 7)}` : time.slice(0, 5);
}
