// Small bar charts of the last minutes.

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 360, HEIGHT = 90;

/** Draw stacked bars: `series` is `[[class, [number, …]], …]`, all of one length. Returns the highest stack. */
export function bars(svg, series) {
  const sums = series[0][1].map((_, place) => series.reduce((sum, [, values]) => sum + values[place], 0));
  const most = Math.max(1, ...sums), step = WIDTH / sums.length;
  svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  svg.setAttribute("preserveAspectRatio", "none");
  const rects = [];
  sums.forEach((_, place) => {
    let y = HEIGHT;
    for (const [kind, values] of series) {
      const height = (values[place] / most) * HEIGHT;
      y -= height;
      if (height) rects.push(rect({ class: kind, x: place * step, y, width: step * 0.8, height }));
    }
  });
  svg.replaceChildren(rect({ class: "floor", x: 0, y: HEIGHT - 1, width: WIDTH, height: 1 }), ...rects);
  return Math.max(...sums);
}

function rect(attributes) {
  const made = document.createElementNS(SVG, "rect");
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}
