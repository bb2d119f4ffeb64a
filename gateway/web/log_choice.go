package web

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"

	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
)

// logParameters are the query parameters that select a part of the log of a task.
var logParameters = []string{"attempt", "generation", "stream"}

// maxAttemptTabs bounds the attempts that a page offers; the newest are kept.
const maxAttemptTabs = 20

// logChoice is the selected part of a task's log with the alternatives.
type logChoice struct {
	Attempts, Streams, Generations []logTab
	// Follow is the address of the live lines.
	Follow, Search, Whole, Download string
	// Fields are the hidden fields of the search form.
	Fields []Field
	// Mark is the placeholder for the last lines, which are read when a page is opened.
	Mark string
}

// logTab is a link to another part of a log.
type logTab struct {
	Text, URL string
	Current   bool
}

// logMark is the placeholder for the last lines of a log in a page that callers share.
const logMark = "<li>the last lines of the log</li>"

// newLogChoice returns the log choice of a page.
func newLogChoice(req request, run *v1.Run, t *v1.Task) *logChoice {
	c := &logChoice{Mark: logMark}
	query := url.Values{}
	for _, name := range logParameters {
		if value := req.query.Get(name); value != "" {
			query.Set(name, value)
			c.Fields = append(c.Fields, Field{name, value})
		}
	}
	address := func(path string) string {
		if len(query) == 0 {
			return req.path + path
		}
		return req.path + path + "?" + query.Encode()
	}
	c.Follow, c.Search, c.Download = address("/log"), req.path+"/log/search", address("/download/"+downloadLog)
	c.Whole = withParameter(address("/log/search"), "from", "1")
	tab := func(name, value, text string) logTab {
		return logTab{text, withParameter(req.url(), name, value) + "#log", req.query.Get(name) == value}
	}
	c.Streams = []logTab{tab("stream", "", "both"), tab("stream", "stdout", "output"), tab("stream", "stderr", "errors")}
	isAgain := slices.ContainsFunc(t.GetAttempts(), func(a *v1.Attempt) bool { return a.GetState() == v1.AttemptMoved })
	if newest := int(t.GetAttempt()); newest > 0 || isAgain || req.query.Has("attempt") {
		c.Attempts = append(c.Attempts, tab("attempt", "", "newest"))
		for n := max(0, newest-maxAttemptTabs+1); n <= newest; n++ {
			c.Attempts = append(c.Attempts, tab("attempt", strconv.Itoa(n), fmt.Sprintf("attempt %d", n)))
		}
	}
	if newest := int(run.GetGeneration()); newest > 0 {
		c.Generations = append(c.Generations, tab("generation", "", "newest"))
		for n := max(0, newest-maxAttemptTabs+1); n <= newest; n++ {
			c.Generations = append(c.Generations, tab("generation", strconv.Itoa(n), fmt.Sprintf("generation %d", n)))
		}
	}
	return c
}

// logNumber returns a numeric query parameter of a log, or nil if it is absent.
func logNumber(query url.Values, name string) (*int32, error) {
	text := query.Get(name)
	if text == "" {
		return nil, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return nil, rpcerror.Invalid("the parameter %s is %q; it must be a number of at least 0", name, text)
	}
	return new(int32(n)), nil
}

// logRequest returns the request for the complete current log that a query selects.
func logRequest(run, task string, query url.Values) (*v1.StreamRunLogsRequest, error) {
	attempt, err := logNumber(query, "attempt")
	if err != nil {
		return nil, err
	}
	generation, err := logNumber(query, "generation")
	if err != nil {
		return nil, err
	}
	return &v1.StreamRunLogsRequest{Id: run, Task: task, Attempt: attempt, Generation: generation, Stream: query.Get("stream")}, nil
}
