package web

import (
	"bytes"
	"context"
	"errors"
	"html/template"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"

	"switchyard/gateway/rpcerror"
	"switchyard/gateway/web/ansi"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// maxScanned and scanTime bound how much of a log a search reads, in bytes and in time.
	maxScanned = 64 << 20
	scanTime   = 10 * time.Second
	// maxHits bounds the lines that a search shows, and maxMarks the marked matches in each of them.
	maxHits  = 200
	maxMarks = 50
	// logPage is the number of lines in a page of the whole log. A link from a search result shows beforeHit lines before
	// the hit.
	logPage   = 500
	beforeHit = 20
	// maxQuery bounds the search text, in bytes.
	maxQuery = 1000
)

// searchParameters are the query parameters of a search: the text, or the number of the first line to show.
var searchParameters = append([]string{"q", "from"}, logParameters...)

// searchView is the result of a search, or a page of the whole log.
type searchView struct {
	Run, Task string
	Query     string
	From      int // number of the first line, or 0 for a search
	Fields    []Field
	Rows      []searchRow
	Lines     int // number of lines read
	// Stopped is why the search ended before the log, or "".
	Stopped         string
	Earlier, Later  string // addresses
	Whole, Download string
	Missing         []string
}

// searchRow is a displayed line of the log.
type searchRow struct {
	Number int
	Line   logLine
	Time   template.HTML
	HTML   template.HTML
	URL    string // address of the line in its context
}

// settledSource is a source of data that never change.
type settledSource struct {
	load func(ctx context.Context) (viewData, error)
}

func (s settledSource) next(ctx context.Context) (viewData, error) {
	data, err := s.load(ctx)
	if err == nil {
		err = io.EOF
	}
	return data, err
}

func (s settledSource) close() {}

func openLogSearch(w *Web, req request) viewSource {
	return settledSource{func(ctx context.Context) (viewData, error) {
		s, err := newLogSearch(req)
		if err != nil {
			return viewData{}, err
		}
		if s.view.Query != "" || s.view.From > 0 {
			if err := s.scan(ctx, w); err != nil {
				return viewData{}, err
			}
		}
		return viewData{"Log of " + s.view.Task + " of " + s.view.Run, "log-search", s.view}, nil
	}}
}

// logSearch reads a log from its beginning and collects the lines to show.
type logSearch struct {
	req     request
	request *v1.StreamRunLogsRequest
	view    searchView
	styles  map[logKey]*ansi.Stream
	open    map[logKey][]byte
}

func newLogSearch(req request) (*logSearch, error) {
	request, err := logRequest(req.values["run"], req.values["task"], req.query)
	if err != nil {
		return nil, err
	}
	s := &logSearch{req: req, request: request, styles: map[logKey]*ansi.Stream{}, open: map[logKey][]byte{}}
	s.view = searchView{Run: request.GetId(), Task: request.GetTask(), Query: req.query.Get("q")}
	if len(s.view.Query) > maxQuery {
		return nil, rpcerror.Invalid("the search text has %d bytes; the limit is %d", len(s.view.Query), maxQuery)
	}
	if from := req.query.Get("from"); from != "" && s.view.Query == "" {
		if s.view.From, err = strconv.Atoi(from); err != nil || s.view.From < 1 {
			return nil, rpcerror.Invalid("the parameter from is %q; it must be a line number of at least 1", from)
		}
	}
	query := url.Values{}
	for _, name := range logParameters {
		if value := req.query.Get(name); value != "" {
			query.Set(name, value)
			s.view.Fields = append(s.view.Fields, Field{name, value})
		}
	}
	s.view.Whole, s.view.Download = s.lineURL(1), taskURL(s.view.Run, s.view.Task)+"/download/"+downloadLog
	if len(query) > 0 {
		s.view.Download += "?" + query.Encode()
	}
	return s, nil
}

// lineURL returns the address of the log page that starts at a line.
func (s *logSearch) lineURL(number int) string {
	return withParameter(withParameter(s.req.url(), "q", ""), "from", strconv.Itoa(max(1, number)))
}

// errEnough ends a scan when the page is full.
var errEnough = errors.New("the page is full")

// scan reads the log until it ends, the page is full or a bound is reached.
func (s *logSearch) scan(ctx context.Context, w *Web) error {
	ctx, cancel := context.WithTimeout(ctx, scanTime)
	defer cancel()
	stream, err := w.services.runs.StreamRunLogs(ctx, connect.NewRequest(s.request))
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	read := 0
	for stream.Receive() {
		m := stream.Msg()
		if missing := m.GetMissing(); missing != nil {
			s.view.Missing = append(s.view.Missing, missingText(missing))
		}
		for _, e := range m.GetEntries() {
			read += len(e.GetData())
			if s.entry(e) != nil {
				return nil
			}
		}
		if read > maxScanned {
			s.view.Stopped = "The search covers the first 64 MiB of the log; download the log to see all of it."
			return nil
		}
	}
	switch err := stream.Err(); {
	case err == nil:
	case rpcerror.CodeOf(err) == connect.CodeDeadlineExceeded:
		s.view.Stopped = "The search stopped after 10 s, before the end of the log; download the log to see all of it."
	default:
		return err
	}
	for key, rest := range s.open {
		if s.line(logLine{Task: key.task, Generation: key.generation, Attempt: key.attempt, Stream: key.stream}, rest) != nil {
			break
		}
	}
	return nil
}

// entry splits an entry into lines and processes them.
func (s *logSearch) entry(e *v1.LogEntry) error {
	l := logLine{Task: e.GetTask(), Generation: e.GetGeneration(), Attempt: e.GetAttempt(), Stream: e.GetStream(), Time: e.GetTime().AsTime(), Notice: e.GetNotice()}
	for rest := e.GetData(); len(rest) > 0; {
		piece, after, whole := bytes.Cut(rest, []byte("\n"))
		rest = after
		key := l.key()
		if held := s.open[key]; len(held) > 0 {
			piece = append(held, piece...)
		}
		if !whole && len(piece) < maxRow {
			s.open[key] = bytes.Clone(piece)
			continue
		}
		delete(s.open, key)
		if err := s.line(l, piece); err != nil {
			return err
		}
	}
	return nil
}

// line processes a line: it shows the line if the line is a hit or on the requested page.
func (s *logSearch) line(l logLine, text []byte) error {
	s.view.Lines++
	style := s.styles[l.key()]
	if style == nil {
		if len(s.styles) > maxLogKeys {
			clear(s.styles)
		}
		style = &ansi.Stream{}
		s.styles[l.key()] = style
	}
	if s.view.From > 0 {
		return s.pageLine(l, style.Parse(string(text)))
	}
	line := style.Parse(string(text))
	plain := line.Text()
	marks := ansi.Find(plain, s.view.Query, maxMarks)
	if len(marks) == 0 {
		return nil
	}
	if len(s.view.Rows) == maxHits {
		s.view.Stopped = "It ended after " + strconv.Itoa(maxHits) + " lines; refine the search to see others."
		return errEnough
	}
	n := s.view.Lines
	s.view.Rows = append(s.view.Rows, searchRow{n, l, template.HTML(rowTime(l.Time)), line.Marked(marks), s.lineURL(n-beforeHit) + "#L" + strconv.Itoa(n)})
	return nil
}

// pageLine shows a line if it is on the requested page of the log.
func (s *logSearch) pageLine(l logLine, line ansi.Line) error {
	n := s.view.Lines
	if n < s.view.From {
		return nil
	}
	if s.view.From > 1 {
		s.view.Earlier = s.lineURL(s.view.From - logPage)
	}
	if len(s.view.Rows) == logPage {
		s.view.Later = s.lineURL(n)
		return errEnough
	}
	s.view.Rows = append(s.view.Rows, searchRow{n, l, template.HTML(rowTime(l.Time)), line.HTML(), "#L" + strconv.Itoa(n)})
	return nil
}

// From returns the origin of the line, or "" for standard output.
func (r searchRow) From() string {
	var words []string
	switch {
	case r.Line.Notice:
		words = append(words, "switchyard")
	case r.Line.Stream == "stderr":
		words = append(words, "err")
	}
	return strings.Join(words, " ")
}

// Class returns the CSS class of the row.
func (r searchRow) Class() string {
	switch {
	case r.Line.Notice:
		return "notice"
	case r.Line.Stream == "stderr":
		return "err"
	}
	return ""
}
