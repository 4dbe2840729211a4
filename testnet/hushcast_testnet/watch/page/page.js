// Hears what is going on in the testnet, once a second, and shows it.

import { Overlay } from "./overlay.js";

const at = (id) => document.getElementById(id);
const overlay = new Overlay(at("overlay"));
const choice = at("subscription");
const rows = document.querySelector("tbody");
let source;

function listen() {
  source?.close();
  source = new EventSource(`events?subscription=${encodeURIComponent(choice.value)}`);
  source.onmessage = (event) => show(JSON.parse(event.data));
  source.onerror = () => say("the testnet's page has ended", "away");
}

function show(state) {
  const ready = state.nodes.filter((node) => node.ready).length;
  say(state.ready ? "ready" : "not ready", state.ready ? "ready" : "away");
  facts({ transport: state.transport, epoch: `${state.epoch} s`, "directory's pid": state.directory.pid ?? "not running" });
  const { published, delivered, transmissions, delay_p50: delay } = state.figures;
  figures({
    "daemons ready": `${ready} of ${state.nodes.length}`,
    published, delivered, transmissions,
    "median delay": delay === null ? "–" : delay < 1 ? `${Math.round(delay * 1000)} ms` : `${delay.toFixed(1)} s`,
  });
  choices(state.subscriptions);
  const chosen = state.subscriptions.find((one) => one.id === choice.value);
  overlay.draw(state.nodes, chosen ? state.tree : null, chosen?.owner);
  overlay.show(state.moves);
  at("overlay-text").textContent = describe(state, chosen);
  daemons(state.nodes);
}

function describe(state, chosen) {
  if (!chosen) return `${state.nodes.length} daemons in a circle, ${state.moves.length} hops in the last second.`;
  return `The tree of ${chosen.owner}'s subscription to “${chosen.topic}”: ${chosen.relays} relays send upwards to its mailbox.`;
}

function say(text, kind) {
  const pill = at("state");
  if (pill.textContent !== text) pill.textContent = text;
  pill.className = `pill ${kind}`;
}

function facts(values) {
  at("facts").replaceChildren(...Object.entries(values).map(([name, value]) => {
    const pair = document.createElement("div");
    pair.append(element("dt", name), element("dd", value));
    return pair;
  }));
}

function figures(values) {
  at("figures").replaceChildren(...Object.entries(values).map(([name, value]) => {
    const card = element("div", "");
    card.className = "figure";
    card.dataset.name = name;
    card.append(element("b", value.toLocaleString()), element("span", name));
    return card;
  }));
}

function choices(subscriptions) {
  const known = new Set([...choice.options].map((option) => option.value));
  for (const one of subscriptions) {
    if (!known.has(one.id)) choice.append(new Option(`“${one.topic}” by ${one.owner}`, one.id));
  }
  const held = new Set(subscriptions.map((one) => one.id));
  for (const option of [...choice.options]) {
    if (option.value && !held.has(option.value)) option.remove();
  }
}

function daemons(nodes) {
  const most = Math.max(1, ...nodes.map((node) => node.sent));
  nodes.forEach((node, number) => {
    const row = rows.children[number] ?? rows.appendChild(newRow());
    row.dataset.name = node.name;
    const away = node.pid === null ? "not running" : node.ready ? "ready" : "not ready";
    const texts = [node.name, away, node.pid ?? "–", node.links, node.leases, node.sent];
    texts.forEach((text, column) => {
      const cell = row.children[column].firstChild;
      if (cell.data !== String(text)) cell.data = text;
    });
    row.children[1].className = away === "ready" ? "" : "away";
    const meter = row.querySelector("meter");
    meter.max = most;
    meter.value = node.sent;
    meter.setAttribute("aria-label", `${node.name} has sent ${node.sent} messages on`);
  });
  while (rows.children.length > nodes.length) rows.lastChild.remove();
}

function newRow() {
  const row = document.createElement("tr");
  const head = element("th", " ");
  head.scope = "row";
  row.append(head, ...Array.from({ length: 5 }, () => element("td", " ")));
  row.lastChild.append(document.createElement("meter"));
  row.onmouseenter = () => overlay.choose(row.dataset.name);
  row.onmouseleave = () => overlay.choose("");
  return row;
}

function element(name, text) {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}

choice.onchange = listen;
listen();
