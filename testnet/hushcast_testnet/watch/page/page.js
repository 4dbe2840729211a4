// Hears what is going on in the testnet, once a second, and shows it. What is said is made by the server.

import { bars } from "./chart.js";
import { Drawing } from "./drawing.js";

const at = (id) => document.getElementById(id);
const wayDrawing = new Drawing(at("drawing"), "saw-");
const treeDrawing = new Drawing(at("overlay"));
const choice = at("subscription"), follow = at("follow"), probes = at("probes"), list = at("messages");
const rows = document.querySelector("tbody");
const narrow = matchMedia("(max-width: 60rem)");
const items = new Map(); // the list's, by message
const MANY = 10; // cards that are open at first, where the screen is wide
let source, chosen = "", shown = "", opened = "", began = 0;

function listen() {
  source?.close();
  document.body.toggleAttribute("data-probes", probes.checked);
  const message = follow.checked ? "" : chosen;
  const wanted = new URLSearchParams({ subscription: choice.value, message, probes: probes.checked ? "yes" : "" });
  source = new EventSource(`events?${wanted}`);
  source.onmessage = (event) => show(JSON.parse(event.data));
  source.onerror = () => say("the testnet's page has ended", "gone");
}

function show(state) {
  began = state.began;
  say(state.state, state.kind);
  at("without-tor").hidden = state.transport !== "tcp";
  document.body.dataset.carrier = state.carrier ?? "overlay";
  const serving = state.directory ? { "directory's pid": state.directory.pid ?? "not running" } : { carrier: state.carrier };
  facts({ transport: state.transport, epoch: `${state.epoch} s`, ...serving });
  if (follow.checked) chosen = state.way?.id ?? "";
  if (!state.messages.length) hint(state.nodes);
  messages(state.messages, !state.directory);
  if (state.way) way(state.way, !state.directory);
  history(state);
  choices(state.subscriptions);
  tree(state);
  daemons(state.serving, state.nodes);
}

function messages(all, isCentral) {
  at("none").hidden = all.length > 0;
  const wanted = all.map((message) => {
    const item = items.get(message.id) ?? newItem(message.id);
    const [topic, when, rest] = item.firstChild.children;
    set(topic, message.topic === null ? "probe" : `“${message.topic}”`);
    item.className = message.topic === null ? "probe" : "";
    set(when, clock(message.time));
    const relays = isCentral ? [] : [counted(message.relays, "relay")];
    const became = message.seconds === null ? [message.topic === null ? "" : message.fate]
      : [counted(message.inboxes, "subscriber"), duration(message.seconds)];
    set(rest, [...relays, ...became].filter(Boolean).join(" · "));
    item.firstChild.setAttribute("aria-pressed", message.id === chosen);
    return item;
  });
  if (wanted.length !== list.children.length || wanted.some((item, place) => list.children[place] !== item)) {
    const focused = document.activeElement;
    list.replaceChildren(...wanted);
    if (list.contains(focused)) focused.focus({ preventScroll: true });
  }
  const kept = new Set(all.map((message) => message.id));
  for (const id of items.keys()) if (!kept.has(id)) items.delete(id);
}

/** Say what to type, at daemons that there are; clients come last. */
function hint(nodes) {
  const [publisher, subscriber] = nodes.filter((node) => node.pid !== null).slice(-2);
  set(at("try"), subscriber ? `hushcast subscribe weather --socket ${subscriber.socket}\n` +
    `hushcast publish weather 'it rains' --socket ${publisher.socket}` : "");
}

function newItem(id) {
  const item = element("li", ""), button = element("button", "");
  button.type = "button";
  button.append(element("b", ""), element("span", ""), element("span", ""));
  button.onclick = () => {
    chosen = id;
    follow.checked = false;
    listen();
    if (narrow.matches) document.querySelector(".overlay").scrollIntoView();
  };
  item.append(button);
  items.set(id, item);
  return item;
}

function way(one, isCentral) {
  const now = JSON.stringify(one);
  if (now !== shown) {
    shown = now;
    at("chosen").hidden = false;
    set(at("way-title"), `The way of ${one.topic === null ? "a probe" : `“${one.topic}”`}, ${clock(one.time)}`);
    set(at("summary"), one.summary);
    cards(one);
    set(at("others"), one.others.length ? `Saw nothing of it at all: ${one.others.join(", ")}.`
      : isCentral ? "" : "Every relay of this testnet saw it.");
  }
  wayDrawing.draw(one.drawing);
}

/** Show what each learned: all of it where there is room, else the first origin's until others are opened. */
function cards({ id, time, stations }) {
  const before = new Map([...at("stations").children].map((card) => [card.id, card.open]));
  const first = stations.find((station) => station.kind === "origin"), fits = !narrow.matches && stations.length <= MANY;
  at("stations").replaceChildren(...stations.map((station) => {
    const made = card(station, time);
    made.open = (id === opened ? before.get(made.id) : undefined) ?? (fits || station === first);
    return made;
  }));
  opened = id;
}

function card(station, start) {
  const made = element("details", ""), head = element("summary", "");
  made.id = `saw-${station.id}`;
  made.className = `station ${station.kind}`;
  head.append(element("h4", station.name), element("span", station.role));
  if (station.time !== null) head.append(element("time", `${clock(station.time, 3)} (+${duration(station.time - start)})`));
  made.append(head);
  if (station.note) made.append(element("p", station.note));
  const columns = element("div", "");
  columns.append(told("saw", "It saw", station.saw), told("hidden", "It did not see", station.hidden));
  made.append(columns);
  return made;
}

function told(kind, title, sentences) {
  const made = element("div", ""), all = element("ul", "");
  made.className = kind;
  all.append(...sentences.map((sentence) => element("li", sentence)));
  made.append(element("h5", title), all);
  return made;
}

function history({ history: told, figures: all, nodes }) {
  const highest = (most) => `(highest: ${most.toLocaleString()} in ${told.slice} s)`;
  set(at("messages-most"), highest(bars(at("messages-chart"), [["message-bar", told.messages]])));
  const hops = [["message-bar", told.hops], ...(probes.checked ? [["probe-bar", told.probe_hops]] : [])];
  set(at("hops-most"), highest(bars(at("hops-chart"), hops)));
  const minute = (values) => values.slice(-Math.round(60 / told.slice)).reduce((sum, value) => sum + value, 0);
  set(at("minute"), `In the last minute: ${counted(minute(told.messages), "message")}, ` +
    `${counted(minute(told.hops), "transmission")} of messages, ${minute(told.probe_hops).toLocaleString()} of probes.`);
  figures({
    "daemons ready": `${nodes.filter((node) => node.kind === "ready").length} of ${nodes.length}`,
    published: all.published, delivered: all.delivered,
    "transmissions of messages": all.transmissions, "transmissions of probes": all.probe_transmissions,
    "median delay": all.delay_p50 === null ? "–" : duration(all.delay_p50),
  });
}

function tree(state) {
  const subscription = state.subscriptions.find((one) => one.id === state.shown);
  for (const id of ["overlay", "overlay-foot"]) at(id).toggleAttribute("hidden", !state.tree);
  if (!state.directory) {
    set(at("overlay-text"), state.carrier === "brokers"
      ? "Publications go to the root, and down the tree to daemons that want them, each below its edge broker."
      : "Publications go down from users by a proxy to the server, deliveries from there by another " +
      "proxy to users. Every daemon stands at the top as publisher and at the bottom as subscriber.");
    if (state.tree) {
      treeDrawing.draw(state.tree);
      treeDrawing.show(state.moves);
    }
    return;
  }
  if (!state.tree || !subscription) {
    set(at("overlay-text"), !state.subscriptions.length ? "Nobody subscribes yet."
      : subscription ? `${subscription.owner} has just subscribed to “${subscription.topic}”: its tree is being told to the relays.`
        : state.way?.topic ? `Nobody is subscribed to “${state.way.topic}” now: no tree leads anywhere.`
          : "This probe came to no box of a subscription that there is.");
    return;
  }
  set(at("overlay-text"), `${counted(subscription.relays, "relay")} pass messages on “${subscription.topic}” down to ` +
    `${subscription.owner}'s box.${state.tree.arrows.some(({ kind }) => kind === "taken") ? " In colour: the chosen one." : ""}`);
  treeDrawing.draw(state.tree);
  treeDrawing.show(state.moves.map(({ from, to }) =>
    ({ from: from || "publisher", to: to === subscription.id ? "mailbox" : to })));
}

function say(text, kind) {
  set(at("state"), text);
  at("state").className = `pill ${kind}`;
}

function facts(values) {
  at("facts").replaceChildren(...Object.entries(values).map(([name, value]) => {
    const pair = element("div", "");
    pair.append(element("dt", name), element("dd", value));
    return pair;
  }));
}

function figures(values) {
  at("figures").replaceChildren(...Object.entries(values).map(([name, value]) => {
    const figure = element("div", "");
    figure.className = "figure";
    figure.dataset.name = name;
    figure.append(element("b", value.toLocaleString()), element("span", name));
    return figure;
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

function daemons(serving, nodes) {
  const all = [...serving.map((one) => ({ ...one, links: "–", leases: "–", sent: one.passed[0], probes_sent: one.passed[1] })), ...nodes];
  all.forEach((node, number) => {
    const row = rows.children[number] ?? rows.appendChild(newRow());
    const texts = [node.name, node.state, node.pid ?? "–", node.links, node.leases, node.sent, node.probes_sent];
    texts.forEach((text, column) => set(row.children[column], typeof text === "number" && column > 2 ? text.toLocaleString() : text));
    row.children[1].className = node.kind;
  });
  while (rows.children.length > all.length) rows.lastChild.remove();
}

function newRow() {
  const row = element("tr", ""), head = element("th", "");
  head.scope = "row";
  row.append(head, ...Array.from({ length: 6 }, () => element("td", "")));
  return row;
}

function clock(time, digits = 0) {
  const options = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };
  if (digits) options.fractionalSecondDigits = digits;
  return new Date((began + time) * 1000).toLocaleTimeString("en-GB", options);
}

function duration(seconds) {
  return Math.abs(seconds) < 1 ? `${Math.round(seconds * 1000)} ms` : `${seconds.toFixed(1)} s`;
}

function counted(number, noun) {
  return `${number.toLocaleString()} ${noun}${number === 1 ? "" : "s"}`;
}

function element(name, text) {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}

function set(where, text) {
  if (where.textContent !== String(text)) where.textContent = text;
}

addEventListener("hashchange", () => {
  const card = at(decodeURIComponent(location.hash.slice(1)));
  if (card?.matches(".station")) card.open = true;
});
follow.onchange = listen;
choice.onchange = listen;
probes.onchange = listen;
listen();
