// Publishes by the npm package `ntfy`: its module, the server, and a message as JSON are the arguments.
const [module, server, message] = process.argv.slice(2);
const { publish } = await import(module);
console.log(JSON.stringify(await publish({ server, ...JSON.parse(message) })));
