// offerThemes has a button choose light or dark; without a choice the system decides.
const themes = ["", "light", "dark"], words = { "": "Theme: system", light: "Theme: light", dark: "Theme: dark" }

export function offerThemes() {
  const button = document.getElementById("theme")
  const apply = theme => {
    document.documentElement.dataset.theme = theme
    button.textContent = words[theme]
  }
  let theme = ""
  try { theme = localStorage.getItem("switchyard-theme") ?? "" } catch { /* the browser keeps nothing */ }
  if (!themes.includes(theme)) theme = ""
  apply(theme)
  button.hidden = false
  button.addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length]
    try { localStorage.setItem("switchyard-theme", theme) } catch { /* it lasts as long as the page */ }
    apply(theme)
  })
}
