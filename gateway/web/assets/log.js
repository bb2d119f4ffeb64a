// The log of a task: rows as they come, by the stream of the browser. The page keeps the newest ones.
const mostRows = 5000

export function start(lists, { watch, on }) {
  for (const list of lists) follow(list, watch, on)
}

function follow(list, watch, on) {
  const section = list.closest("section"), box = list.parentElement
  const state = section.querySelector("[data-log-state]"), end = section.querySelector("[data-log-end]")
  const wrap = section.querySelector("[data-log-wrap]")
  wrap?.addEventListener("change", () => box.classList.toggle("unwrapped", !wrap.checked))

  // The address has the tab's own mark: two tabs do not share a position.
  const tab = crypto.getRandomValues(new Uint32Array(2)).join("")
  const address = list.dataset.log + (list.dataset.log.includes("?") ? "&" : "?") + "tab=" + tab
  let atEnd = true, dropped = 0, ended = false, begins = false
  const isAtEnd = () => box.scrollHeight - box.scrollTop - box.clientHeight < 24
  const toEnd = () => { box.scrollTop = box.scrollHeight }
  box.addEventListener("scroll", () => {
    atEnd = isAtEnd()
    end.hidden = atEnd || ended
  }, { passive: true })
  end?.addEventListener("click", () => {
    atEnd = true
    toEnd()
    box.focus({ preventScroll: true })
  })
  const holder = document.createElement("template")

  on("log", (update, of) => {
    if (of !== address) return
    if (update.problem) {
      state.textContent = `The log cannot be read at the moment: ${update.problem}. Trying again.`
      return
    }
    if (update.reset) {
      begins = true
      list.querySelector("[data-log-failure]")?.remove()
    }
    if (begins && update.lines.length > 0) {
      list.replaceChildren() // what the page was loaded with, or what was shown before the stream was lost for long
      dropped = 0
      begins = false
    }
    dropped += update.dropped ?? 0
    holder.innerHTML = update.lines.join("")
    const rows = [...holder.content.children]
    const fresh = document.createDocumentFragment()
    for (const row of rows) {
      const known = document.getElementById(row.id)
      if (known?.classList.contains("open")) known.replaceWith(row)
      else fresh.append(row)
    }
    if (update.dropped) list.append(mark(`${update.dropped} lines came too fast to be shown; the whole log has them`))
    list.append(fresh)
    for (let over = list.childElementCount - mostRows; over > 0; over--) {
      list.firstElementChild.remove()
      dropped++
    }
    ended = Boolean(update.ended)
    state.textContent = (ended ? "The log has ended." : "Live.") + (dropped ? ` ${dropped} lines are left out; the whole log has them.` : "")
    if (atEnd) toEnd()
  })
  toEnd()
  state.textContent = "Connecting."
  watch(address, "")
}

function mark(text) {
  const row = document.createElement("li")
  row.className = "mark"
  row.textContent = text
  return row
}
