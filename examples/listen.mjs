// Publishes a line on a topic, or prints what comes on it, through the control socket of a daemon: what a
// program in any language does that can open a Unix socket and read JSON (docs/control-socket.md).
//
//     node examples/listen.mjs TOPIC
//     node examples/listen.mjs TOPIC "The door is open"
//
// HUSHCAST_SOCKET says where the socket is. A private topic's link comes from the variable LINK, with "-" for
// TOPIC: arguments of programs are there for all users of the machine to read.
import { createConnection } from 'node:net';
import { createInterface } from 'node:readline';

const WINDOW = 16; // messages that may be on their way to us
const [named, text] = process.argv.slice(2);
const topic = named === '-' ? process.env.LINK : named;
const socket = createConnection(process.env.HUSHCAST_SOCKET);
const say = (message) => socket.write(JSON.stringify(message) + '\n');

function end(reason) {
  console.error(reason);
  process.exit(1);
}

socket.on('error', (error) => end(`there is no daemon: ${error.message}`));
socket.on('close', () => end('the daemon went away'));
say({ op: 'hello', version: 2 });
if (text === undefined) {
  say({ op: 'subscribe', topic, since: 0, window: WINDOW, request: 1 });
} else {
  say({ op: 'publish', topic, payload: Buffer.from(text).toString('base64'), request: 1 });
}
for await (const line of createInterface({ input: socket, crlfDelay: Infinity })) {
  const told = JSON.parse(line);
  switch (told.event) {
    case 'subscribed':
      console.log(`listening: ${told.nodes} ${told.by ?? 'relay'}s route here`);
      break;
    case 'message':
      // JSON.stringify: what a stranger sent must not drive the terminal.
      console.log(JSON.stringify(Buffer.from(told.payload, told.encoding).toString()));
      // Printed, so it never comes again; and one more may be sent.
      say({ op: 'shown', request: 1, shown: told.cursor, acknowledged: told.cursor, more: 1 });
      break;
    case 'lost':
      console.log(`lost before they came here: ${told.count ?? 'nobody knows how many'}`);
      break;
    case 'published':
      console.log(`a relay has taken ${told.id}`);
      process.exit(0);
    case 'failed':
      end(told.reason);
    default: // what a later daemon says besides
  }
}
