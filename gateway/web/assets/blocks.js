// applyUpdate makes the elements of a view what an update says. Blocks come as HTML that the gateway has escaped.
export function applyUpdate(update) {
  if (update.shape !== undefined && update.shape !== document.body.dataset.shape) return location.reload()
  if (update.title) document.title = update.title + " · Switchyard"
  const blocks = update.blocks ?? {}, lists = update.lists ?? {}
  const active = document.activeElement?.closest?.("[id]")?.id
  for (const [id, html] of Object.entries(blocks)) {
    const element = document.getElementById(id)
    if (element) replace(element, html)
  }
  for (const [id, items] of Object.entries(lists)) {
    const list = document.getElementById(id)
    if (list) arrange(list, items, blocks)
  }
  if (active && !document.activeElement?.closest?.("#" + CSS.escape(active))) {
    const element = document.getElementById(active)
    ;(element?.querySelector("a, button, input, summary") ?? element)?.focus?.({ preventScroll: true })
  }
  document.dispatchEvent(new CustomEvent("switchyard:updated"))
}

// replace exchanges an element, unless a person is typing in it.
function replace(element, html) {
  if (element.contains(document.activeElement) && document.activeElement.matches("input:not([type=hidden]), textarea, select")) return
  const open = [...element.querySelectorAll("details[open][id]")].map(d => d.id)
  const parent = element.parentNode, next = element.nextSibling
  element.insertAdjacentHTML("beforebegin", html)
  element.remove()
  for (const id of open) document.getElementById(id)?.setAttribute("open", "")
  return next ? next.previousSibling : parent.lastChild
}

// arrange gives a list its children in their order.
function arrange(list, items, blocks) {
  const wanted = new Set(items)
  for (const child of [...list.children]) if (child.id && !wanted.has(child.id)) child.remove()
  let at = list.firstElementChild
  for (const id of items) {
    while (at && !at.id) at = at.nextElementSibling
    if (at?.id === id) {
      at = at.nextElementSibling
      continue
    }
    const known = document.getElementById(id)
    if (known?.parentNode === list) {
      list.insertBefore(known, at)
    } else if (blocks[id]) {
      if (at) at.insertAdjacentHTML("beforebegin", blocks[id])
      else list.insertAdjacentHTML("beforeend", blocks[id])
    }
  }
}
