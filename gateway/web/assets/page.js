import { keepTimes } from "./times.js"
import { applyUpdate } from "./blocks.js"
import { guardForms } from "./forms.js"
import { offerThemes } from "./theme.js"

const body = document.body, view = body.dataset.view
const connection = document.getElementById("connection")

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
  if (typeof SharedWorker === "undefined") {
    const channel = new MessageChannel()
    import("./stream.js").then(m => new m.Hub().join(channel.port2))
    port = channel.port1
  } else {
    port = new SharedWorker(body.dataset.worker, { type: "module", name: "switchyard " + body.dataset.build }).port
  }
  port.onmessage = e => hear(e.data)
  port.start()
  addEventListener("pagehide", () => port.postMessage({ leave: true }))
  addEventListener("pageshow", e => { if (e.persisted) port.postMessage({ watch: watched }) })
}

function hear(message) {
  if (message.state) return showConnection(message.state)
  const { event, data } = message
  switch (event) {
    case "hello":
      if (data.build !== body.dataset.build) location.reload()
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
