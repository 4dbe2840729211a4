// The drawing of the overlay: who sends to whom in a chosen tree, and messages on their way.

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 900, HEIGHT = 560, MARGIN = 60, RADIUS = 17;
const TRAVEL = 800; // milliseconds that a message is seen on a hop
const MOST = 80; // messages shown a second; more would be a blur
const still = matchMedia("(prefers-reduced-motion: reduce)");

export class Overlay {
  constructor(svg) {
    this.svg = svg;
    this.layers = ["edges", "messages", "nodes"].map(() => svg.appendChild(document.createElementNS(SVG, "g")));
    this.places = new Map();
    this.shape = "";
  }

  /** Draw daemons and, if there is one, the tree under `owner`: each relay's next hop, null for the mailbox. */
  draw(nodes, tree, owner) {
    const shape = JSON.stringify([nodes.map((node) => node.name), tree, owner]);
    if (shape !== this.shape) {
      this.shape = shape;
      this.places = tree ? treePlaces(nodes, tree, owner) : circlePlaces(nodes);
      this.rebuild(nodes, tree, owner);
    }
    for (const node of nodes) {
      this.groups.get(node.name).classList.toggle("away", !node.ready);
    }
  }

  rebuild(nodes, tree, owner) {
    const [edges, messages, groups] = this.layers;
    for (const layer of this.layers) layer.replaceChildren();
    this.edges = new Map();
    this.groups = new Map();
    for (const [name, next] of Object.entries(tree ?? {})) {
      const [from, to] = [this.places.get(name), this.places.get(next ?? owner)];
      if (!from || !to) continue;
      const middle = (from.y + to.y) / 2;
      const path = `M${from.x} ${from.y}C${from.x} ${middle} ${to.x} ${middle} ${to.x} ${to.y}`;
      this.edges.set(`${name} ${next ?? owner}`, add(edges, "path", { class: "edge", d: path }));
    }
    for (const node of nodes) {
      const { x, y } = this.places.get(node.name);
      const kind = `node ${node.role}${tree && node.name === owner ? " mailbox" : ""}`;
      const group = add(groups, "g", { class: kind, "data-name": node.name, transform: `translate(${x} ${y})` });
      add(group, "circle", { r: RADIUS });
      add(group, "text", { y: RADIUS + 18 }).textContent = node.name;
      this.groups.set(node.name, group);
    }
  }

  /** Mark one daemon, or none. */
  choose(name) {
    for (const [known, group] of this.groups ?? []) group.classList.toggle("chosen", known === name);
  }

  /** Show messages on their hops, spread over a second. */
  show(moves) {
    const shown = moves.slice(-MOST);
    shown.forEach((move, number) => {
      const delay = (number * 1000) / shown.length;
      const [from, to] = [this.places.get(move.from), this.places.get(move.to)];
      if (!to) return;
      const edge = this.edges.get(`${move.from} ${move.to}`);
      if (edge) light(edge, delay);
      if (!still.matches) this.fly(from ?? { x: to.x, y: to.y - 3 * RADIUS }, to, delay);
    });
  }

  fly(from, to, delay) {
    const dot = add(this.layers[1], "circle", { class: "message", r: 6 });
    const at = ({ x, y }) => `translate(${x}px, ${y}px)`;
    const way = dot.animate([{ transform: at(from) }, { transform: at(to) }], {
      duration: TRAVEL, delay, fill: "both", easing: "ease-in-out",
    });
    way.finished.then(() => dot.remove(), () => dot.remove());
  }
}

function light(edge, delay) {
  setTimeout(() => edge.classList.add("busy"), delay);
  clearTimeout(edge.dimming);
  edge.dimming = setTimeout(() => edge.classList.remove("busy"), delay + TRAVEL);
}

function add(parent, name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return parent.appendChild(element);
}

function circlePlaces(nodes) {
  const places = new Map();
  nodes.forEach((node, number) => {
    const angle = (2 * Math.PI * number) / nodes.length - Math.PI / 2;
    places.set(node.name, {
      x: WIDTH / 2 + (WIDTH / 2 - 1.5 * MARGIN) * Math.cos(angle),
      y: HEIGHT / 2 + (HEIGHT / 2 - MARGIN) * Math.sin(angle),
    });
  });
  return places;
}

/** The mailbox's owner on top, relays below by their depth, each above those that send to it; others at the foot. */
function treePlaces(nodes, tree, owner) {
  const children = new Map();
  for (const [name, next] of Object.entries(tree)) {
    if (name !== owner) children.set(next ?? "", [...(children.get(next ?? "") ?? []), name]);
  }
  const levels = [[owner]];
  for (let level = children.get("") ?? []; level.length; ) {
    levels.push(level);
    level = level.flatMap((name) => children.get(name) ?? []);
  }
  const placed = new Set(levels.flat());
  const others = nodes.map((node) => node.name).filter((name) => !placed.has(name));
  if (others.length) levels.push(others);
  const places = new Map();
  levels.forEach((level, depth) => {
    const y = MARGIN + ((HEIGHT - 2 * MARGIN) * depth) / Math.max(1, levels.length - 1);
    level.forEach((name, number) => places.set(name, { x: (WIDTH * (number + 0.5)) / level.length, y }));
  });
  return places;
}
