// guardForms sends the forms of actions without leaving the page, and asks before what cannot be taken back.
const notice = document.getElementById("notice"), ask = document.getElementById("ask")

export function guardForms() {
  document.addEventListener("submit", async e => {
    const form = e.target
    if (!form.matches("form.action")) return
    e.preventDefault()
    const button = form.querySelector("button"), data = new URLSearchParams(new FormData(form))
    if (form.dataset.ask || form.dataset.reason) {
      const answer = await question(form, button)
      if (!answer) return
      data.set("confirmed", "yes")
      if (answer.reason) data.set("reason", answer.reason)
    }
    button.disabled = true
    try {
      const res = await fetch(form.action, { method: "POST", body: data, headers: { Accept: "application/json" } })
      const body = await res.json()
      say(res.ok ? body.message : body.message ?? "The gateway refused this.", !res.ok)
      if (body.next) location.assign(body.next)
    } catch {
      say("The gateway does not answer; nothing is known of this action. Look before you repeat it.", true)
    } finally {
      button.disabled = false
    }
  })
}

function question(form, button) {
  const yes = document.getElementById("ask-yes"), reason = document.getElementById("ask-reason")
  document.getElementById("ask-question").textContent = form.dataset.ask ?? button.textContent + "?"
  yes.textContent = button.textContent
  reason.hidden = !form.dataset.reason
  const input = reason.querySelector("input")
  input.value = ""
  ask.returnValue = "no"
  ask.showModal()
  return new Promise(resolve => {
    ask.addEventListener("close", () => resolve(ask.returnValue === "yes" ? { reason: input.value } : null), { once: true })
  })
}

// say shows what an action has done.
export function say(text, failed) {
  notice.textContent = text
  notice.classList.toggle("failed", Boolean(failed))
  notice.hidden = !text
}
