package cli

import (
	"bytes"
	"io"
	"slices"
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

// maxLogLine is where a line without an end is broken.
const maxLogLine = 64 << 10

// logPrinter prints what tasks have printed.
type logPrinter struct {
	stdout, stderr io.Writer
	// prefix puts "task | " before each line. Without it bytes are as they were.
	prefix bool
	// only is the one task whose output has no prefix; its instances do. Empty: there is none.
	only string
	// stdoutPlain and stderrPlain say which writers show only text. What was written
	// over is left out there, since it would be lines of their own.
	stdoutPlain, stderrPlain bool
	// zone is that of the times before the lines; nil: there are none.
	zone *time.Location
	// document takes the lines in place of the writers; nil: they go to people.
	document *logDocument
	// tail, while gathering, is how many lines of each task are kept back; all others are left out.
	tail      int
	gathering bool

	partial map[source]*logLine // lines that have not ended
	order   []source            // of what partial has ever held
	kept    map[string][]logLine
	keeping []string // the tasks of kept, in order
}

// source is where a line comes from.
type source struct {
	task    string
	attempt int32
	stream  string
}

// logLine is a line of a task.
type logLine struct {
	source
	at    time.Time // when its beginning was printed
	text  []byte    // without the newline
	ended bool      // it has one
}

// print prints entries.
func (p *logPrinter) print(entries []*v1.LogEntry) error {
	for _, e := range entries {
		from := source{e.GetTask(), e.GetAttempt(), e.GetStream()}
		if p.asItWas(from) && p.zone == nil && p.document == nil && !p.gathering {
			if held := p.partial[from]; held != nil {
				if _, err := p.to(from.stream).Write(held.text); err != nil {
					return err
				}
				delete(p.partial, from)
			}
			if _, err := p.to(from.stream).Write(e.GetData()); err != nil {
				return err
			}
			continue
		}
		if err := p.lines(from, e.GetTime().AsTime(), e.GetData()); err != nil {
			return err
		}
	}
	return nil
}

// asItWas reports whether lines have no prefix.
func (p *logPrinter) asItWas(from source) bool {
	return !p.prefix && (p.only == "" || p.only == from.task)
}

func (p *logPrinter) to(stream string) io.Writer {
	if stream == "stderr" {
		return p.stderr
	}
	return p.stdout
}

// lines cuts what a task has printed into lines.
func (p *logPrinter) lines(from source, at time.Time, data []byte) error {
	if p.partial == nil {
		p.partial = map[source]*logLine{}
	}
	for len(data) > 0 {
		held := p.partial[from]
		if held == nil {
			held = &logLine{source: from, at: at}
			p.partial[from] = held
			if !slices.Contains(p.order, from) {
				p.order = append(p.order, from)
			}
		}
		room := maxLogLine - len(held.text)
		end := bytes.IndexByte(data[:min(len(data), room)], '\n')
		held.ended = end >= 0
		switch {
		case held.ended:
			held.text, data = append(held.text, data[:end]...), data[end+1:]
		case len(data) < room:
			held.text = append(held.text, data...)
			return nil
		default:
			held.text, data = append(held.text, data[:room]...), data[room:]
			held.ended = true
		}
		delete(p.partial, from)
		if err := p.line(*held); err != nil {
			return err
		}
	}
	return nil
}

// line prints a line, or keeps it back while the last ones are gathered.
func (p *logPrinter) line(l logLine) error {
	if !p.gathering {
		return p.write(l)
	}
	if p.kept == nil {
		p.kept = map[string][]logLine{}
	}
	lines, known := p.kept[l.task]
	if !known {
		p.keeping = append(p.keeping, l.task)
	}
	lines = append(lines, l)
	p.kept[l.task] = lines[max(0, len(lines)-p.tail):]
	return nil
}

// release prints what was kept back; from now on nothing is.
func (p *logPrinter) release() error {
	p.gathering = false
	for _, task := range p.keeping {
		for _, l := range p.kept[task] {
			if err := p.write(l); err != nil {
				return err
			}
		}
	}
	p.kept, p.keeping = nil, nil
	return nil
}

// logTime is how times look before lines: RFC 3339, to the millisecond.
const logTime = "2006-01-02T15:04:05.000Z07:00"

func (p *logPrinter) write(l logLine) error {
	if p.document != nil {
		return p.document.add(l)
	}
	text := l.text
	if l.stream == "stderr" && p.stderrPlain || l.stream != "stderr" && p.stdoutPlain {
		text = bytes.TrimRight(text, "\r")
		text = text[bytes.LastIndexByte(text, '\r')+1:]
	}
	line := make([]byte, 0, len(logTime)+len(l.task)+len(text)+8)
	if p.zone != nil {
		line = append(l.at.In(p.zone).AppendFormat(line, logTime), ' ')
	}
	if !p.asItWas(l.source) {
		line = append(append(line, l.task...), " | "...)
	}
	line = append(line, text...)
	if l.ended || !p.asItWas(l.source) {
		line = append(line, '\n')
	}
	_, err := p.to(l.stream).Write(line)
	return err
}

// flush prints the lines that have not ended.
func (p *logPrinter) flush() error {
	for _, from := range p.order {
		if l := p.partial[from]; l != nil {
			if err := p.line(*l); err != nil {
				return err
			}
		}
	}
	p.partial, p.order = nil, nil
	return p.release()
}

// logDocument writes lines in JSON: as the items of one document, or each as a
// document on a line of its own.
type logDocument struct {
	w     io.Writer
	lines bool
	items int
}

// logItem is a line in JSON.
type logItem struct {
	Time    string `json:"time"`
	Task    string `json:"task"`
	Attempt int32  `json:"attempt"`
	Stream  string `json:"stream"`
	Text    string `json:"text"`
}

func (d *logDocument) add(l logLine) error {
	item := logItem{l.at.UTC().Format(time.RFC3339Nano), l.task, l.attempt, l.stream, string(l.text)}
	if d.lines {
		return writeLine(d.w, item)
	}
	before := ",\n    "
	if d.items == 0 {
		before = "{\n  \"items\": [\n    "
	}
	d.items++
	text, err := jsonText(item)
	if err != nil {
		return err
	}
	_, err = io.WriteString(d.w, before+text)
	return err
}

// end writes the rest.
func (d *logDocument) end() error {
	tail := "\n  ],\n  \"nextPageToken\": \"\"\n}\n"
	switch {
	case d.lines:
		return nil
	case d.items == 0:
		tail = "{\n  \"items\": [],\n  \"nextPageToken\": \"\"\n}\n"
	}
	_, err := io.WriteString(d.w, tail)
	return err
}
