// Takes runs through their lives with openapi-fetch and the types that openapi-typescript makes of /openapi.json.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

declare const process: { argv: string[] };

const client = createClient<paths>({ baseUrl: process.argv[2] });

function ensure(holds: unknown, what: string): asserts holds {
  if (!holds) throw new Error(what);
}

// got returns the data of an answer, or throws its error.
function got<T>(what: string, answer: { data?: T; error?: components["schemas"]["Error"] }): T {
  if (answer.error) throw new Error(`${what}: ${answer.error.code}: ${answer.error.message}`);
  ensure(answer.data !== undefined, `${what}: no data`);
  return answer.data;
}

type Event = { event: string; data: string };

// events reads a stream of server-sent events to its end.
async function* events(stream: ReadableStream<Uint8Array>): AsyncGenerator<Event> {
  const reader = stream.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += value;
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const lines = text.slice(0, end).split("\n");
      text = text.slice(end + 2);
      const field = (name: string) =>
        lines.filter((line) => line.startsWith(name + ": ")).map((line) => line.slice(name.length + 2)).join("\n");
      if (field("event")) yield { event: field("event"), data: field("data") };
    }
  }
}

// watch follows a run to its end and returns the names of its events.
async function watch(id: string): Promise<string[]> {
  const answer = await client.GET("/v1/runs/{id}/events", {
    params: { path: { id }, query: { follow: true } },
    parseAs: "stream",
  });
  const names: string[] = [];
  for await (const { event } of events(got("watch", answer) as ReadableStream<Uint8Array>)) names.push(event);
  ensure(names.at(-1) === "end", `the stream ended with ${names.at(-1)}`);
  return names;
}

const submit = async (name: string, command: string) =>
  got(
    "submit",
    await client.POST("/v1/runs", {
      params: { header: { "Idempotency-Key": `client-${name}` } },
      body: { definition: { name, tasks: { greet: { type: "shell", spec: { command } } } } },
    }),
  );

const short = await submit("client-short", "echo hello from a client");
ensure(!short.existed, "a first request finds a run");
ensure((await submit("client-short", "echo hello from a client")).id === short.id, "the same key starts another run");

const names = await watch(short.id);
ensure(names.length > 1, `the only events are ${names}`);
const run = got("get", await client.GET("/v1/runs/{id}", { params: { path: { id: short.id } } }));
ensure(run.state === "completed", `the run is ${run.state}`);
ensure(run.tasks["greet"]?.state === "completed", "the task has not completed");

const logs = got(
  "logs",
  await client.GET("/v1/runs/{id}/tasks/{task}/logs", { params: { path: { id: short.id, task: "greet" } } }),
);
ensure(JSON.stringify(logs).includes("hello from a client"), `the log is ${JSON.stringify(logs)}`);
const followed = await client.GET("/v1/runs/{id}/tasks/{task}/logs", {
  params: { path: { id: short.id, task: "greet" }, query: { follow: true } },
  parseAs: "stream",
});
let printed = "";
for await (const { data } of events(got("follow", followed) as ReadableStream<Uint8Array>)) printed += data;
ensure(printed.includes("hello from a client"), `the stream of the log is ${printed}`);

const long = await submit("client-long", "sleep 600");
got("cancel", await client.POST("/v1/runs/{id}/cancel", { params: { path: { id: long.id } }, body: { reason: "enough" } }));
await watch(long.id);

let listed: string[] = [];
for (let i = 0; i < 300 && !listed.includes(long.id); i++) {
  const page = got("list", await client.GET("/v1/runs", { params: { query: { state: "cancelled", name: "client-long" } } }));
  listed = page.items.map((item) => item.id);
  if (!listed.includes(long.id)) await new Promise((resolve) => setTimeout(resolve, 1000));
}
ensure(listed.includes(long.id), "the run is not listed");

const { error, response } = await client.POST("/v1/runs/{id}/cancel", { params: { path: { id: long.id } } });
ensure(response.status === 409 && error?.code === "aborted", `a second cancel gives ${response.status} ${error?.code}`);
const missing = await client.GET("/v1/runs/{id}", { params: { path: { id: "no-such-run" } } });
ensure(missing.response.status === 404 && missing.error?.code === "not_found", "an unknown run is found");
console.log("done");
