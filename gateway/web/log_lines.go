package web

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"switchyard/gateway/web/ansi"
)

// maxRow bounds the text of a log row, in bytes. A longer line is split into several rows.
const maxRow = 16 << 10

// logLine is a line of a log, or a piece of one, as the services return it.
type logLine struct {
	Task       string    `json:"task"`
	Generation int32     `json:"generation"`
	Attempt    int32     `json:"attempt"`
	Stream     string    `json:"stream"`
	Time       time.Time `json:"time"`
	Text       string    `json:"text"`
	Partial    bool      `json:"partial"`
	Notice     bool      `json:"notice"`
}

// logKey identifies an output stream of an attempt.
type logKey struct {
	task                string
	generation, attempt int32
	stream              string
}

func (l logLine) key() logKey { return logKey{l.Task, l.Generation, l.Attempt, l.Stream} }

// logRow is a row of a log. A row replaces an earlier row with the same id when its line continues.
type logRow struct {
	id   string
	html string
}

// logRows converts log lines to rows. It is not safe for concurrent use.
type logRows struct {
	task   string // owner of the log; rows of its instances show the instance
	prefix string // of row ids
	number int
	open   map[logKey]*openLine
	styles map[logKey]*ansi.Stream
	last   logKey // of the newest row
}

// openLine is a line without its end.
type openLine struct {
	id   string
	text string
}

// maxLogKeys bounds the streams whose styles are kept.
const maxLogKeys = 1000

func newLogRows(task, prefix string) *logRows {
	return &logRows{task: task, prefix: prefix, open: map[logKey]*openLine{}, styles: map[logKey]*ansi.Stream{}}
}

// add returns the rows that a line or a piece of a line produces.
func (r *logRows) add(l logLine) []logRow {
	var rows []logRow
	key := l.key()
	if r.last.task != "" && r.last.task == key.task && (r.last.attempt != key.attempt || r.last.generation != key.generation) {
		rows = append(rows, logRow{r.nextID(), fmt.Sprintf(`<li class="mark">attempt %d of generation %d</li>`, l.Attempt, l.Generation)})
	}
	r.last = key
	if len(r.styles) > maxLogKeys {
		clear(r.styles)
		clear(r.open)
	}
	style := r.styles[key]
	if style == nil {
		style = &ansi.Stream{}
		r.styles[key] = style
	}
	line := r.open[key]
	if line == nil {
		line = &openLine{id: r.nextID()}
		r.open[key] = line
	}
	line.text += l.Text
	for len(line.text) > maxRow {
		head, _ := cutText(line.text, maxRow)
		rows = append(rows, logRow{line.id, r.row(line.id, l, style.Parse(head).HTML(), false)})
		line.id, line.text = r.nextID(), line.text[len(head):]
	}
	shown := style
	if l.Partial {
		shown = new(*style) // it is parsed again with its continuation
	} else {
		delete(r.open, key)
	}
	return append(rows, logRow{line.id, r.row(line.id, l, shown.Parse(line.text).HTML(), l.Partial)})
}

// note returns a row with a notice of Switchyard itself.
func (r *logRows) note(text string) logRow {
	id := r.nextID()
	return logRow{id, `<li id="` + id + `" class="notice"><span class="from">switchyard</span> <span class="said">` + template.HTMLEscapeString(text) + `</span></li>`}
}

// failure returns a row in place of a log that could not be read. It links to address, which tries again. The script of the
// page removes the row once it has read the log.
func (r *logRows) failure(text, address string) logRow {
	id := r.nextID()
	return logRow{id, `<li id="` + id + `" class="notice" data-log-failure><span class="from">switchyard</span> <span class="said">` +
		template.HTMLEscapeString(text) + ` <a href="` + template.HTMLEscapeString(address) + `">Try again</a></span></li>`}
}

func (r *logRows) nextID() string {
	r.number++
	return fmt.Sprintf("%s%d", r.prefix, r.number)
}

// row returns the HTML of a row.
func (r *logRows) row(id string, l logLine, text template.HTML, isOpen bool) string {
	var class, from string
	switch {
	case l.Notice:
		class, from = "notice", "switchyard"
	case l.Stream == "stderr":
		class, from = "err", "err"
	}
	if isOpen {
		class = strings.TrimSpace(class + " open")
	}
	if l.Task != r.task {
		from = strings.TrimSpace(l.Task + " " + from)
	}
	var html strings.Builder
	html.WriteString(`<li id="` + id + `"`)
	if class != "" {
		html.WriteString(` class="` + class + `"`)
	}
	html.WriteString(">" + rowTime(l.Time) + " ")
	if from != "" {
		html.WriteString(`<span class="from">` + template.HTMLEscapeString(from) + `</span> `)
	}
	html.WriteString(`<span class="said">` + string(text) + `</span></li>`)
	return html.String()
}

// rowTime returns the time element of a row.
func rowTime(at time.Time) string {
	if at.IsZero() {
		return "<time></time>"
	}
	at = at.UTC()
	return `<time datetime="` + at.Format(time.RFC3339Nano) + `" title="` + at.Format(timeLayout) + `">` + at.Format("15:04:05") + `</time>`
}
