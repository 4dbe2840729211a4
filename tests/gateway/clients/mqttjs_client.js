// mqtt.js, spoken to in lines of JSON: one request a line on standard input, answers and messages on standard output.
"use strict";
const mqtt = require(process.argv[2]);
const clients = new Map();
const tell = (line) => process.stdout.write(JSON.stringify(line) + "\n");

const requests = {
  connect: ({ client: name, url, options }) =>
    new Promise((resolve, reject) => {
      const client = mqtt.connect(url, { ...options, reconnectPeriod: 0, resubscribe: false });
      clients.set(name, client);
      client.on("message", (topic, payload, { qos, retain }) =>
        tell({ client: name, message: { topic, payload: payload.toString(), qos, retain } }));
      client.once("connect", ({ sessionPresent }) => resolve(sessionPresent));
      client.on("error", reject);
    }),
  subscribe: async ({ client, wanted, qos }) => (await clients.get(client).subscribeAsync(wanted, { qos }))[0].qos,
  publish: async ({ client, topic, payload, qos, retain }) => {
    await clients.get(client).publishAsync(topic, payload, { qos, retain });
  },
  close: async ({ client }) => {
    await clients.get(client).endAsync();
  },
  die: async ({ client }) => {
    clients.get(client).stream.destroy();
  },
};

require("readline").createInterface({ input: process.stdin }).on("line", async (line) => {
  const request = JSON.parse(line);
  try {
    tell({ id: request.id, answer: await requests[request.do](request) });
  } catch (error) {
    tell({ id: request.id, error: String(error) });
  }
}).on("close", () => process.exit(0));
