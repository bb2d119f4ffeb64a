package svg

import (
	_ "embed"
	"strings"
)

// Rules is the style sheet of drawings. Its colours are CSS variables, which Colours defines for documents that do not define
// their own.
//
//go:embed rules.css
var Rules string

// Colours defines the variables that Rules needs, for light and dark colour schemes.
//
//go:embed colours.css
var Colours string

// Document turns a drawing that is one <svg> into a file that includes its style.
func Document(drawing string) string {
	at := strings.IndexByte(drawing, '>') + 1
	return `<?xml version="1.0" encoding="UTF-8"?>` + "\n" + drawing[:at] + "<style>" + Colours + Rules + `</style><rect class="paper" width="100%" height="100%"/>` + drawing[at:] + "\n"
}
