import { keepTimes } from "./times.js"
import { applyUpdate } from "./blocks.js"
import { guardForms } from "./forms.js"
import { offerThemes } from "./theme.js"

const body = document.body, view = body.dataset.view
const connection = document.getElementById("connection")
// How long a worker may say nothing, and how old a page is at least that is loaded again for another build, in milliseconds.
const workerPatience = 5000, reloadAfter = 30_000

offerThemes()
keepTimes()
guardForms()

// extras are parts of views with a script of their own.
const extras = [
  ["[data-log]", "./log.js"],
  [".timeline", "./timeline.js"],
]
const handlers = { view: [applyUpdate], log: [] }
for (const [selector, module] of extras) {
  const elements = document.querySelectorAll(selector)
  if (elements.length > 0) import(module).then(m => m.start(elements, { watch, on: (event, f) => handlers[event].push(f) }))
}

const watched = {}
let port

// watch has the stream send updates of a view, besides those that are watched already.
function watch(address, version) {
  watched[address] = version
  port?.postMessage({ watch: watched })
}

connect()
if (view) watch(view, body.dataset.version)

function connect() {
  if (!view) return
  addEventListener("pagehide", () => port.postMessage({ leave: true }))
  addEventListener("pageshow", e => { if (e.persisted) port.postMessage({ watch: watched }) })
  if (typeof SharedWorker === "undefined") return connectAlone()
  // The worker says at once how its connection is.
  const silent = setTimeout(connectAlone, workerPatience)
  const worker = new SharedWorker(body.dataset.worker, { type: "module", name: "switchyard " + body.dataset.build })
  const first = e => {
    clearTimeout(silent)
    hear(e.data)
    worker.port.onmessage = e => hear(e.data)
  }
  use(worker.port, first)
}

// connectAlone has a stream for this tab alone, where the browser has no shared workers, or has stopped the one of this page.
function connectAlone() {
  if (port) port.onmessage = null
  const channel = new MessageChannel()
  import("./stream.js").then(m => new m.Hub().join(channel.port2))
  use(channel.port1, e => hear(e.data))
  port.postMessage({ watch: watched })
}

function use(next, listen) {
  port = next
  port.onmessage = listen
  port.start()
}

function hear(message) {
  if (message.state) return showConnection(message.state)
  const { event, data } = message
  switch (event) {
    case "hello":
      // A page that was loaded a moment ago is of another gateway of the deployment, which may have another build.
      if (data.build !== body.dataset.build && performance.now() > reloadAfter) location.reload()
      return
    case "failed":
      if (data.view in watched) say(data.message)
      return
  }
  if (!(data.view in watched)) return
  watched[data.view] = data.update.version
  if (data.view === view) body.dataset.version = data.update.version
  for (const f of handlers[event]) f(data.update, data.view)
}

const words = {
  lost: "The connection to the gateway is lost; trying again.",
  out: "You are logged out.",
}
let lostTimer = 0

function showConnection(state) {
  clearTimeout(lostTimer)
  body.dataset.live = state
  if (state === "out") return say(words.out, "/ui/login?next=" + encodeURIComponent(location.pathname + location.search))
  if (state === "lost") {
    lostTimer = setTimeout(() => say(words.lost), 1000)
  } else {
    connection.hidden = true
  }
}

function say(text, link) {
  connection.textContent = text
  if (link) {
    const a = document.createElement("a")
    a.href = link
    a.textContent = "Log in"
    connection.append(" ", a)
  }
  connection.hidden = false
}
