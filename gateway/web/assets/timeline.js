// start lets the bars of what is open grow with time: the gateway draws them up to the next step of the axis.
export function start() {
  grow()
  setInterval(grow, 500)
  document.addEventListener("switchyard:updated", grow)
  markTogether()
}

function grow() {
  const frame = document.getElementById("timeline-frame")
  if (!frame) return
  const from = Number(frame.dataset.from), whole = Number(frame.dataset.to) - from
  const now = Math.min(1, (Date.now() - from) / whole)
  for (const bar of document.querySelectorAll(".timeline rect.open")) {
    const begin = Math.max(0, (Number(bar.dataset.from) - from) / whole)
    bar.setAttribute("width", (Math.max(0.15, (now - begin) * 100)).toFixed(2) + "%")
  }
}

// markTogether shows which lane belongs to the node of the graph that is pointed at or has the focus.
function markTogether() {
  for (const [on, off] of [["mouseover", "mouseout"], ["focusin", "focusout"]]) {
    document.addEventListener(on, e => mark(e.target, true))
    document.addEventListener(off, e => mark(e.target, false))
  }
}

function mark(target, isOn) {
  const node = target.closest?.(".graph .node")
  if (node) document.getElementById("t-" + node.id.slice(2))?.classList.toggle("marked", isOn)
}
