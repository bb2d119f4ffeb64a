package svg

import (
	_ "embed"
	"strings"
)

// Rules is the style of drawings. It takes its colours from variables, which
// Colours has for documents that have none of their own.
//
//go:embed rules.css
var Rules string

// Colours has the variables that Rules needs, light and dark by what the reader prefers.
//
//go:embed colours.css
var Colours string

// Document makes a file of a drawing that is one <svg>, with its style inside.
func Document(drawing string) string {
	at := strings.IndexByte(drawing, '>') + 1
	return `<?xml version="1.0" encoding="UTF-8"?>` + "\n" + drawing[:at] + "<style>" + Colours + Rules + `</style><rect class="paper" width="100%" height="100%"/>` + drawing[at:] + "\n"
}
