package cli

import (
	"bytes"
	"context"
	"io"

	"connectrpc.com/connect"

	"switchyard/cli/tui"
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
	// plain takes out what would move the cursor.
	plain bool

	partial map[source][]byte // lines that have not ended
	order   []source          // of what partial has ever held
}

// source is where a line comes from.
type source struct {
	task    string
	attempt int32
	stream  string
}

// print prints entries.
func (p *logPrinter) print(entries []*v1.LogEntry) error {
	for _, e := range entries {
		if !p.prefix && (p.only == "" || p.only == e.GetTask()) {
			if _, err := p.to(e.GetStream()).Write(e.GetData()); err != nil {
				return err
			}
			continue
		}
		if err := p.lines(source{e.GetTask(), e.GetAttempt(), e.GetStream()}, e.GetData()); err != nil {
			return err
		}
	}
	return nil
}

func (p *logPrinter) to(stream string) io.Writer {
	if stream == "stderr" {
		return p.stderr
	}
	return p.stdout
}

func (p *logPrinter) lines(from source, data []byte) error {
	if p.partial == nil {
		p.partial = map[source][]byte{}
	}
	held, known := p.partial[from]
	if !known {
		p.order = append(p.order, from)
	}
	held = append(held, data...)
	for {
		end := bytes.IndexByte(held, '\n')
		if end < 0 && len(held) < maxLogLine {
			break
		}
		if end < 0 {
			end = len(held)
		}
		if err := p.line(from, held[:end]); err != nil {
			return err
		}
		held = held[min(end+1, len(held)):]
	}
	p.partial[from] = bytes.Clone(held)
	return nil
}

func (p *logPrinter) line(from source, text []byte) error {
	if p.plain {
		text = []byte(tui.Plain(string(text)))
	}
	line := make([]byte, 0, len(from.task)+len(text)+4)
	line = append(append(append(line, from.task...), " | "...), text...)
	_, err := p.to(from.stream).Write(append(line, '\n'))
	return err
}

// flush prints the lines that have not ended.
func (p *logPrinter) flush() error {
	for _, from := range p.order {
		if text := p.partial[from]; len(text) > 0 {
			if err := p.line(from, text); err != nil {
				return err
			}
		}
	}
	p.partial, p.order = nil, nil
	return nil
}

// logs prints the logs that a request asks for.
func (a *api) logs(ctx context.Context, req *v1.StreamRunLogsRequest, p *logPrinter) error {
	stream, err := a.calls.StreamRunLogs(ctx, connect.NewRequest(req))
	if err != nil {
		return a.failed(err)
	}
	defer func() {
		// What the stream ended with has been told by Err.
		_ = stream.Close()
	}()
	for stream.Receive() {
		if err := p.print(stream.Msg().GetEntries()); err != nil {
			return err
		}
	}
	if err := p.flush(); err != nil {
		return err
	}
	if err := stream.Err(); err != nil {
		return a.failed(err)
	}
	return nil
}
