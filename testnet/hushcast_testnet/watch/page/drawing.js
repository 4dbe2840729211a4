// Lays out boxes in levels from top to bottom, with arrows between them, and lets messages move along these.

const SVG = "http://www.w3.org/2000/svg";
const BOX = { width: 116, height: 46 }, SMALL = 92, GAP = { row: 14, level: 44 }, MARGIN = 8;
const TRAVEL = 800; // milliseconds that a message is seen on a hop
const MOST = 80; // messages shown a second; more would be a blur
const still = matchMedia("(prefers-reduced-motion: reduce)");

export class Drawing {
  /** `prefix`: boxes are links to elements with this before their id; without it they lead nowhere. */
  constructor(svg, prefix = "") {
    this.svg = svg;
    this.prefix = prefix;
    this.shape = "";
  }

  /** Draw `{levels, arrows}` as wide as there is room; a level too wide for it takes several rows. */
  draw({ levels, arrows }) {
    const width = Math.max(280, Math.floor(this.svg.getBoundingClientRect().width));
    this.across = width < 480 ? SMALL : BOX.width; // of a box
    const shape = JSON.stringify([width, levels, arrows]);
    if (shape === this.shape) return;
    this.shape = shape;
    this.place(levels, width);
    this.svg.replaceChildren();
    [this.lines, this.dots, this.nodes] = ["lines", "dots", "nodes"].map(() => add(this.svg, "g", {}));
    this.edges = new Map(arrows.filter((arrow) => this.places.has(arrow.start) && this.places.has(arrow.end))
      .map((arrow) => [`${arrow.start} ${arrow.end}`, this.line(arrow)]));
    for (const box of levels.flat()) this.box(box);
  }

  place(levels, width) {
    const most = Math.max(1, Math.floor((width - 2 * MARGIN + 8) / (this.across + 8)));
    this.places = new Map();
    let y = MARGIN;
    for (const level of levels.filter((boxes) => boxes.length)) {
      const rows = Math.ceil(level.length / most), across = Math.ceil(level.length / rows);
      level.forEach((box, number) => {
        const row = Math.floor(number / across);
        const inRow = Math.min(across, level.length - row * across);
        const x = MARGIN + ((width - 2 * MARGIN) * ((number % across) + 0.5)) / inRow;
        this.places.set(box.id, { x, y: y + row * (BOX.height + GAP.row) });
      });
      y += rows * (BOX.height + GAP.row) - GAP.row + GAP.level;
    }
    this.svg.setAttribute("viewBox", `0 0 ${width} ${Math.max(1, y - GAP.level + MARGIN)}`);
  }

  line({ start, end, kind }) {
    const from = this.places.get(start), to = this.places.get(end);
    const down = to.y > from.y, side = from.x <= to.x ? 1 : -1;
    const a = down ? { x: from.x, y: from.y + BOX.height } : { x: from.x + (side * this.across) / 2, y: from.y + BOX.height / 2 };
    const b = down ? { x: to.x, y: to.y - 7 } : { x: to.x - (side * (this.across + 14)) / 2, y: to.y + BOX.height / 2 };
    const bend = down ? Math.min(60, (b.y - a.y) / 2) : 0;
    const path = `M${a.x} ${a.y}C${a.x} ${a.y + bend} ${b.x} ${b.y - bend} ${b.x} ${b.y}`;
    const group = add(this.lines, "g", { class: `edge ${kind}` });
    add(group, "path", { d: path });
    const tip = down ? `${b.x - 4},${b.y} ${b.x + 4},${b.y} ${b.x},${b.y + 7}`
      : `${b.x},${b.y - 4} ${b.x},${b.y + 4} ${b.x + 7 * side},${b.y}`;
    add(group, "polygon", { points: tip });
    return group;
  }

  box({ id, label, kind, note }) {
    const { x, y } = this.places.get(id);
    const parent = this.prefix ? add(this.nodes, "a", { href: `#${this.prefix}${id}` }) : this.nodes;
    const group = add(parent, "g", { class: `node ${kind}`, "data-name": label, transform: `translate(${x} ${y})` });
    add(group, "rect", { x: -this.across / 2, width: this.across, height: BOX.height, rx: 9 });
    add(group, "text", { y: note ? 20 : 28 }).textContent = label;
    if (note) add(group, "text", { y: 36, class: "note" }).textContent = note;
  }

  /** Show messages on their hops, spread over a second. */
  show(moves) {
    if (!this.edges) return;
    const shown = moves.slice(-MOST);
    shown.forEach((move, number) => {
      const edge = this.edges.get(`${move.from} ${move.to}`);
      if (edge) this.move(edge, (number * 1000) / shown.length);
    });
  }

  move(edge, delay) {
    setTimeout(() => edge.classList.add("busy"), delay);
    clearTimeout(edge.dimming);
    edge.dimming = setTimeout(() => edge.classList.remove("busy"), delay + TRAVEL);
    if (still.matches) return;
    const path = edge.firstChild, start = path.getPointAtLength(0), end = path.getPointAtLength(path.getTotalLength());
    const dot = add(this.dots, "circle", { class: "message", r: 6 });
    const at = ({ x, y }) => `translate(${x}px, ${y}px)`;
    const way = dot.animate([{ transform: at(start) }, { transform: at(end) }], {
      duration: TRAVEL, delay, fill: "both", easing: "ease-in-out",
    });
    way.finished.then(() => dot.remove(), () => dot.remove());
  }
}

function add(parent, name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return parent.appendChild(element);
}
