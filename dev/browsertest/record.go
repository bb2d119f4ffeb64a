package browsertest

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
)

// Problem is a fault of a page.
type Problem struct {
	// Kind is "console", "exception", "security" (a violation of the Content-Security-Policy), "network" (a request
	// that failed or got an error) or "foreign" (a request to another origin).
	Kind string
	// Text describes the problem.
	Text string
}

// record collects the requests and problems of a page. Other goroutines report them.
type record struct {
	mu       sync.Mutex
	origin   string
	requests []string
	problems []Problem
	warnings []string
	// received maps each request to its encoded bytes: a running sum, replaced by the total when the request has ended.
	received map[network.RequestID]float64
	urls     map[network.RequestID]string
}

func newRecord(origin string) *record {
	return &record{origin: origin, received: map[network.RequestID]float64{}, urls: map[network.RequestID]string{}}
}

// add handles an event of a tab.
func (r *record) add(event any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		r.addConsole(e)
	case *runtime.EventExceptionThrown:
		r.addProblem("exception", exceptionText(e.ExceptionDetails))
	case *log.EventEntryAdded:
		r.addEntry(e.Entry)
	case *network.EventRequestWillBeSent:
		r.requests = append(r.requests, e.Request.URL)
		r.urls[e.RequestID] = e.Request.URL
		if !isOwn(r.origin, e.Request.URL) {
			r.addProblem("foreign", "request to another origin: "+e.Request.URL)
		}
	case *network.EventDataReceived:
		r.received[e.RequestID] += float64(e.EncodedDataLength)
	case *network.EventLoadingFinished:
		r.received[e.RequestID] = max(r.received[e.RequestID], e.EncodedDataLength)
	case *network.EventLoadingFailed:
		// Leaving a page cancels its requests.
		if !e.Canceled {
			r.addProblem("network", fmt.Sprintf("%s: %s", cmp.Or(r.urls[e.RequestID], string(e.Type)), e.ErrorText))
		}
	}
}

func (r *record) addProblem(kind, text string) {
	r.problems = append(r.problems, Problem{Kind: kind, Text: text})
}

// addConsole records errors and warnings that a script wrote to the console.
func (r *record) addConsole(e *runtime.EventConsoleAPICalled) {
	var parts []string
	for _, arg := range e.Args {
		parts = append(parts, objectText(arg))
	}
	text := strings.Join(parts, " ")
	switch e.Type {
	case runtime.ConsoleAPICalledTypeError, runtime.ConsoleAPICalledTypeAssert:
		r.addProblem("console", text)
	case runtime.ConsoleAPICalledTypeWarning:
		r.warnings = append(r.warnings, text)
	}
}

// addEntry records errors and warnings that the browser wrote to the console.
func (r *record) addEntry(entry *log.Entry) {
	text := entry.Text
	if entry.URL != "" {
		text += " (" + entry.URL + ")"
	}
	switch entry.Level {
	case log.EntryLevelError:
		kind := "console"
		switch entry.Source {
		case log.EntrySourceSecurity:
			kind = "security"
		case log.EntrySourceNetwork:
			kind = "network"
		}
		r.addProblem(kind, text)
	case log.EntryLevelWarning:
		r.warnings = append(r.warnings, text)
	}
}

// snapshot is a copy of the records.
type snapshot struct {
	requests, warnings []string
	problems           []Problem
	bytes              int
}

// snapshot returns a copy of the records so far.
func (r *record) snapshot() snapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := snapshot{requests: slices.Clone(r.requests), warnings: slices.Clone(r.warnings), problems: slices.Clone(r.problems)}
	for _, n := range r.received {
		s.bytes += int(n)
	}
	return s
}

// objectText returns the value of a script as text.
func objectText(o *runtime.RemoteObject) string {
	if len(o.Value) > 0 {
		return string(o.Value)
	}
	return cmp.Or(o.Description, string(o.UnserializableValue), string(o.Type))
}

// exceptionText returns the message of an exception and the place where it was thrown.
func exceptionText(d *runtime.ExceptionDetails) string {
	text := d.Text
	if d.Exception != nil {
		text += " " + objectText(d.Exception)
	}
	return fmt.Sprintf("%s (%s:%d)", text, d.URL, d.LineNumber+1)
}

// isOwn reports whether a request stays within its origin. URLs for data of the page itself are no requests.
func isOwn(origin, address string) bool {
	scheme, _, _ := strings.Cut(address, ":")
	switch scheme {
	case "data", "blob", "about":
		return true
	}
	return originOf(address) == origin
}

// originOf returns the origin of a URL, or "" if it has none.
func originOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	scheme := u.Scheme
	switch scheme { // a WebSocket has the origin of its page
	case "ws":
		scheme = "http"
	case "wss":
		scheme = "https"
	}
	return scheme + "://" + u.Host
}
