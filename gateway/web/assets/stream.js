// The one stream of a browser, shared by its tabs: a shared worker where there are such, else a part of the page.
// A tab sends {watch: {address: version}} and gets {event, data}, and {state} of the connection.

const permanent = new Set(["not_found", "permission_denied", "unauthenticated", "invalid_argument"])
const firstPause = 500, longestPause = 10_000

export class Hub {
  constructor() {
    this.tabs = new Map() // port -> Set of addresses
    this.versions = new Map() // address -> version
    this.source = null
    this.pause = firstPause
    this.timer = 0
    this.state = "connecting"
  }

  join(port) {
    this.tabs.set(port, new Set())
    port.onmessage = e => this.hear(port, e.data)
    port.start?.()
    port.postMessage({ state: this.state })
  }

  hear(port, message) {
    if (message.leave) {
      this.tabs.delete(port)
    } else if (message.watch) {
      const watched = new Set()
      for (const [address, version] of Object.entries(message.watch)) {
        watched.add(address)
        // Another tab may have another content of the same view: what either lacks is then sent to both.
        const known = this.versions.get(address)
        this.versions.set(address, known === undefined ? version : older(version, known))
      }
      this.tabs.set(port, watched)
    }
    this.schedule(0)
  }

  watched() {
    const all = new Set()
    for (const addresses of this.tabs.values()) for (const address of addresses) all.add(address)
    for (const address of this.versions.keys()) if (!all.has(address)) this.versions.delete(address)
    return all
  }

  schedule(pause) {
    clearTimeout(this.timer)
    this.timer = setTimeout(() => this.open(), pause)
  }

  open() {
    this.source?.close()
    this.source = null
    const query = new URLSearchParams()
    for (const address of this.watched()) {
      query.append("view", address)
      query.append("at", this.versions.get(address) ?? "")
    }
    if (!query.has("view")) return
    const source = new EventSource("/ui/live?" + query)
    this.source = source
    source.addEventListener("hello", e => {
      this.pause = firstPause
      this.tell("live")
      this.send(null, "hello", JSON.parse(e.data))
    })
    for (const event of ["view", "log"]) {
      source.addEventListener(event, e => {
        const data = JSON.parse(e.data)
        this.versions.set(data.view, data.update.version)
        this.send(data.view, event, data)
      })
    }
    source.addEventListener("failed", e => {
      const data = JSON.parse(e.data)
      if (!permanent.has(data.code)) return this.lose(source)
      for (const addresses of this.tabs.values()) addresses.delete(data.view)
      this.send(null, "failed", data)
    })
    source.onerror = () => this.lose(source)
  }

  lose(source) {
    if (source !== this.source) return
    source.close()
    this.source = null
    this.tell("lost")
    this.schedule(this.pause * (0.75 + Math.random() / 2))
    this.pause = Math.min(this.pause * 2, longestPause)
    // A refusal has no event: whoever is no longer logged in learns it so.
    fetch("/ui/live", { headers: { Accept: "application/json" } }).then(r => {
      if (r.status === 401) this.tell("out")
    }, () => {})
  }

  tell(state) {
    this.state = state
    for (const port of this.tabs.keys()) port.postMessage({ state })
  }

  send(address, event, data) {
    for (const [port, addresses] of this.tabs) {
      if (address === null || addresses.has(address)) port.postMessage({ event, data })
    }
  }
}

// older returns the older one of two versions of a view, or "" if they are of two feeds: everything is sent then.
function older(a, b) {
  const [feedA, numberA] = a.split("."), [feedB, numberB] = b.split(".")
  if (feedA !== feedB) return ""
  return Number(numberA) < Number(numberB) ? a : b
}

if (typeof SharedWorkerGlobalScope !== "undefined" && self instanceof SharedWorkerGlobalScope) {
  const hub = new Hub()
  self.onconnect = e => hub.join(e.ports[0])
}
