package words

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// Count formats a number with its noun, such as "1 task" or "3 tasks".
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Duration formats a duration for people, such as 0.4s, 12s, 3m05s or 2h07m.
func Duration(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < 9950*time.Millisecond:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// OneLine makes a text safe for a line on a terminal: white space becomes spaces, and escape
// sequences and control characters are removed.
func OneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, ansi.Strip(text))
	return strings.TrimSpace(text)
}

// Plain returns a line of program output in its final form, without escape sequences. Of a line
// that was overwritten, the last version remains.
func Plain(line string) string {
	line = strings.TrimRight(ansi.Strip(line), "\r\n")
	if i := strings.LastIndexByte(line, '\r'); i >= 0 {
		line = line[i+1:]
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\t' {
			return -1
		}
		return r
	}, line)
}

// Shorten shortens a name to a width in terminal cells. It cuts in the middle and keeps the index
// of an instance.
func Shorten(name string, width int) string {
	if width <= 0 || ansi.StringWidth(name) <= width {
		return name
	}
	tail := (width - 1) / 2
	if at := strings.LastIndexByte(name, '['); at >= 0 && strings.HasSuffix(name, "]") {
		tail = len(name) - at
	}
	if tail > width-2 {
		return ansi.Truncate(name, width, "…")
	}
	return ansi.Truncate(name, width-1-tail, "") + "…" + ansi.TruncateLeft(name, ansi.StringWidth(name)-tail, "")
}
