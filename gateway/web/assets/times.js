// keepTimes shows times as durations, and keeps these current.
export function keepTimes() {
  show()
  setInterval(show, 1000)
  document.addEventListener("switchyard:updated", show)
}

function show() {
  const now = Date.now()
  for (const e of document.querySelectorAll("time[data-at]")) {
    const text = textOf(e.className, Number(e.dataset.at), now)
    if (e.textContent !== text) e.textContent = text
  }
}

function textOf(kind, at, now) {
  switch (kind) {
    case "t-since": return duration(now - at)
    case "t-ago": return at > now + 1000 ? "in " + duration(at - now) : duration(now - at) + " ago"
    default: return at <= now ? "now" : "in " + duration(at - now)
  }
}

// duration returns a time in milliseconds in words, as the CLI has it.
export function duration(ms) {
  const s = Math.max(0, Math.floor(ms / 1000))
  if (s < 60) return s + "s"
  if (s < 3600) return Math.floor(s / 60) + "m" + (s % 60 ? " " + (s % 60) + "s" : "")
  if (s < 86400) return Math.floor(s / 3600) + "h" + (s % 3600 >= 60 ? " " + Math.floor(s % 3600 / 60) + "m" : "")
  return Math.floor(s / 86400) + "d" + (s % 86400 >= 3600 ? " " + Math.floor(s % 86400 / 3600) + "h" : "")
}
