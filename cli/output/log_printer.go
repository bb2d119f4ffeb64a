package output

import (
	"bytes"
	"io"
	"slices"
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

// maxLogLine is the length, in bytes, at which an unterminated line is broken.
const maxLogLine = 64 << 10

// LogPrinter prints the output of tasks.
type LogPrinter struct {
	Stdout, Stderr io.Writer
	// Prefix puts "task | " before each line. Without it, the bytes stay unchanged.
	Prefix bool
	// Only names the single task whose output has no prefix; its instances have one. "" means no such task.
	Only string
	// StdoutPlain and StderrPlain are true if the writer shows only text. The printer then omits text that a carriage
	// return has overwritten, which would otherwise become separate lines.
	StdoutPlain, StderrPlain bool
	// Zone is the time zone of the times before the lines, or nil for no times.
	Zone *time.Location
	// Document receives the lines instead of the writers. It may be nil.
	Document *LogDocument
	// Tail is the number of last lines of each task that are held back while Gathering is true; earlier lines are
	// dropped.
	Tail      int
	Gathering bool

	printed bool                // an entry has been printed
	partial map[source]*logLine // unterminated lines
	order   []source            // every key that partial has had
	kept    map[string][]logLine
	keeping []string // keys of kept, in order
}

// source identifies where a line comes from.
type source struct {
	task                       string
	generation, attempt, claim int32
	stream                     string
}

// logLine is a line of a task's output.
type logLine struct {
	source
	at    time.Time // when its beginning was printed
	text  []byte    // without the newline
	ended bool      // the newline has arrived
}

// Printed reports whether any entry has been printed.
func (p *LogPrinter) Printed() bool { return p.printed }

// Print prints log entries, each to the output of its stream. It holds back an incomplete line.
func (p *LogPrinter) Print(entries []*v1.LogEntry) error {
	p.printed = p.printed || len(entries) > 0
	for _, e := range entries {
		from := source{e.GetTask(), e.GetGeneration(), e.GetAttempt(), e.GetClaim(), e.GetStream()}
		if p.isVerbatim(from) && p.Zone == nil && p.Document == nil && !p.Gathering {
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

// isVerbatim reports whether lines of a source are printed without a prefix.
func (p *LogPrinter) isVerbatim(from source) bool {
	return !p.Prefix && (p.Only == "" || p.Only == from.task)
}

func (p *LogPrinter) to(stream string) io.Writer {
	if stream == "stderr" {
		return p.Stderr
	}
	return p.Stdout
}

// lines splits the output of a task into lines.
func (p *LogPrinter) lines(from source, at time.Time, data []byte) error {
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

// line prints a line, or holds it back while Gathering is true.
func (p *LogPrinter) line(l logLine) error {
	if !p.Gathering {
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
	p.kept[l.task] = lines[max(0, len(lines)-p.Tail):]
	return nil
}

// Release prints the held-back lines and ends the gathering.
func (p *LogPrinter) Release() error {
	p.Gathering = false
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

// logTime is the format of the times before lines: RFC 3339 with milliseconds.
const logTime = "2006-01-02T15:04:05.000Z07:00"

func (p *LogPrinter) write(l logLine) error {
	if p.Document != nil {
		return p.Document.add(l)
	}
	text := l.text
	if l.stream == "stderr" && p.StderrPlain || l.stream != "stderr" && p.StdoutPlain {
		text = bytes.TrimRight(text, "\r")
		text = text[bytes.LastIndexByte(text, '\r')+1:]
	}
	line := make([]byte, 0, len(logTime)+len(l.task)+len(text)+8)
	if p.Zone != nil {
		line = append(l.at.In(p.Zone).AppendFormat(line, logTime), ' ')
	}
	if !p.isVerbatim(l.source) {
		line = append(append(line, l.task...), " | "...)
	}
	line = append(line, text...)
	if l.ended || !p.isVerbatim(l.source) {
		line = append(line, '\n')
	}
	_, err := p.to(l.stream).Write(line)
	return err
}

// Flush prints unterminated and held-back lines.
func (p *LogPrinter) Flush() error {
	for _, from := range p.order {
		if l := p.partial[from]; l != nil {
			if err := p.line(*l); err != nil {
				return err
			}
		}
	}
	p.partial, p.order = nil, nil
	return p.Release()
}

// LogDocument writes lines as JSON: as the items of one document, or as one document per line if Lines is true.
type LogDocument struct {
	Out   io.Writer
	Lines bool
	items int
}

// logItem is a line as JSON prints it.
type logItem struct {
	Time       string `json:"time"`
	Task       string `json:"task"`
	Generation int32  `json:"generation"`
	Attempt    int32  `json:"attempt"`
	Claim      int32  `json:"claim"`
	Stream     string `json:"stream"`
	Text       string `json:"text"`
}

func (d *LogDocument) add(l logLine) error {
	item := logItem{l.at.UTC().Format(time.RFC3339Nano), l.task, l.generation, l.attempt, l.claim, l.stream, string(l.text)}
	if d.Lines {
		return WriteLine(d.Out, item)
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
	_, err = io.WriteString(d.Out, before+text)
	return err
}

// End writes the end of the document.
func (d *LogDocument) End() error {
	tail := "\n  ],\n  \"nextPageToken\": \"\"\n}\n"
	switch {
	case d.Lines:
		return nil
	case d.items == 0:
		tail = "{\n  \"items\": [],\n  \"nextPageToken\": \"\"\n}\n"
	}
	_, err := io.WriteString(d.Out, tail)
	return err
}
