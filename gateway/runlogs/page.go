package runlogs

import (
	"bytes"
	"compress/flate"
	"errors"
	"io"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
)

// ErrPageFull reports that a page of logs has reached its size.
var ErrPageFull = errors.New("the page is full")

// maxPageBytes is the text size at which a page of lines is cut.
const maxPageBytes = 1 << 20

// lineKey identifies one stream of one dispatch. The lines of a stream stay in order.
type lineKey struct {
	task                       string
	generation, attempt, claim int32
	stream                     string
	notice                     bool
}

// Page collects a page of lines from the messages of a stream of logs. It is not safe for concurrent use.
type Page struct {
	Lines   []*v1.LogLine
	Missing []*v1.MissingLog

	tail int // number of last lines per task; 0 means all lines
	size int
	at   []*v1.LogPosition
	open map[lineKey]*openLine
	// order lists the open lines in the order in which they began.
	order []lineKey
}

// openLine is a line whose end has not arrived.
type openLine struct {
	text []byte
	time *timestamppb.Timestamp
}

// NewPage returns an empty page that continues at the given positions. If tail is not 0, the page keeps only the last lines
// of each task.
func NewPage(at []*v1.LogPosition, tail int) *Page {
	return &Page{at: at, tail: tail, open: map[lineKey]*openLine{}}
}

// Add adds the contents of a message, or returns ErrPageFull and adds nothing.
func (p *Page) Add(m *v1.StreamRunLogsResponse) error {
	if p.size >= maxPageBytes && p.tail == 0 && len(m.GetEntries()) > 0 {
		return ErrPageFull
	}
	if missing := m.GetMissing(); missing != nil {
		p.Missing = append(p.Missing, missing)
	}
	for _, e := range m.GetEntries() {
		p.addEntry(e)
	}
	if at := m.GetPosition(); at != nil {
		p.setPosition(at)
	}
	return nil
}

func (p *Page) addEntry(e *v1.LogEntry) {
	key := lineKey{e.GetTask(), e.GetGeneration(), e.GetAttempt(), e.GetClaim(), e.GetStream(), e.GetNotice()}
	for rest := e.GetData(); len(rest) > 0; {
		text, after, whole := bytes.Cut(rest, []byte("\n"))
		rest = after
		line := p.open[key]
		if line == nil {
			line = &openLine{}
			p.open[key] = line
			p.order = append(p.order, key)
		}
		line.text, line.time = append(line.text, text...), e.GetTime()
		if whole {
			p.close(key, false)
		}
	}
}

// close completes the open line of a stream.
func (p *Page) close(key lineKey, partial bool) {
	line := p.open[key]
	delete(p.open, key)
	p.order = slices.DeleteFunc(p.order, func(k lineKey) bool { return k == key })
	text := strings.ToValidUTF8(string(line.text), "\uFFFD")
	p.Lines = append(p.Lines, &v1.LogLine{
		Task: key.task, Generation: key.generation, Attempt: key.attempt, Claim: key.claim, Stream: key.stream, Notice: key.notice,
		Time: line.time, Text: text, Partial: partial,
	})
	p.size += len(text)
	if p.tail > 0 {
		p.cutTail(key.task)
	}
}

// cutTail drops the oldest line of a task if the task has too many.
func (p *Page) cutTail(task string) {
	count, first := 0, -1
	for i, line := range slices.Backward(p.Lines) {
		if line.GetTask() == task {
			count, first = count+1, i
		}
		if count > p.tail {
			p.size -= len(p.Lines[first].GetText())
			p.Lines = slices.Delete(p.Lines, first, first+1)
			return
		}
	}
}

// setPosition records the new position in the log of a dispatch.
func (p *Page) setPosition(at *v1.LogPosition) {
	for i, known := range p.at {
		if known.GetTask() == at.GetTask() && known.GetGeneration() == at.GetGeneration() && known.GetAttempt() == at.GetAttempt() && known.GetClaim() == at.GetClaim() {
			p.at[i] = at
			return
		}
	}
	p.at = append(p.at, at)
}

// Finish completes the open lines. If the page has a successor, they are partial and continue there.
func (p *Page) Finish(hasNext bool) {
	for len(p.order) > 0 {
		p.close(p.order[0], hasNext)
	}
}

// Position returns the text form of the position at which the next page begins.
func (p *Page) Position() (string, error) {
	data, err := proto.Marshal(&v1.StreamRunLogsRequest{Resume: p.at})
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestCompression)
	if err != nil {
		return "", err
	}
	if _, err := w.Write(data); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	return out.String(), nil
}

// maxPositionBytes bounds the decompressed size of the positions in a token.
const maxPositionBytes = 1 << 20

// ParsePosition parses the result of Position.
func ParsePosition(text string) ([]*v1.LogPosition, error) {
	data, err := io.ReadAll(io.LimitReader(flate.NewReader(strings.NewReader(text)), maxPositionBytes))
	if err != nil {
		return nil, err
	}
	var request v1.StreamRunLogsRequest
	if err := proto.Unmarshal(data, &request); err != nil {
		return nil, err
	}
	return request.GetResume(), nil
}
