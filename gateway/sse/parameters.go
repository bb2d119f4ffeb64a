package sse

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/gateway/rpcerror"
)

// parameters holds the query parameters of a request. Its methods record the first error.
type parameters struct {
	values url.Values
	known  []string
	err    error
}

// newParameters returns the parameters of a request.
func newParameters(r *http.Request) *parameters {
	values, err := url.ParseQuery(r.URL.RawQuery)
	p := &parameters{values: values}
	if err != nil {
		p.err = rpcerror.Invalid("the query of the URL is malformed: %w", err)
	}
	return p
}

// text returns the value of a parameter, or "" if it is absent.
func (p *parameters) text(name string) string {
	p.known = append(p.known, name)
	values := p.values[name]
	if len(values) > 1 {
		p.fail("parameter %s is given %d times; give it once", name, len(values))
	}
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// flag returns the value of a boolean parameter, or fallback if it is absent.
func (p *parameters) flag(name string, fallback bool) bool {
	text := p.text(name)
	if text == "" {
		return fallback
	}
	value, err := strconv.ParseBool(text)
	if err != nil {
		p.fail("parameter %s is %q; it must be true or false", name, text)
	}
	return value
}

// number returns the value of a non-negative integer parameter, or nil if it is absent.
func (p *parameters) number(name string) *int32 {
	text := p.text(name)
	if text == "" {
		return nil
	}
	value, err := strconv.ParseInt(text, 10, 32)
	if err != nil || value < 0 {
		p.fail("parameter %s is %q; it must be a non-negative integer", name, text)
		return nil
	}
	return new(int32(value))
}

// time returns the value of a time parameter, or nil if it is absent.
func (p *parameters) time(name string) *timestamppb.Timestamp {
	text := p.text(name)
	if text == "" {
		return nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		p.fail("parameter %s is %q; write times as 2026-01-31T12:00:00Z", name, text)
		return nil
	}
	return timestamppb.New(at)
}

// lastEventID returns the id of the last event that the client has received, or "" for a new client. It prefers the
// header, which browsers send when they reconnect, to the parameter, which programs use.
func (p *parameters) lastEventID(r *http.Request) string {
	id := p.text("lastEventId")
	if header := r.Header.Get("Last-Event-ID"); header != "" {
		return header
	}
	return id
}

// fail records an error unless there already is one.
func (p *parameters) fail(format string, args ...any) {
	if p.err == nil {
		p.err = rpcerror.Invalid(format, args...)
	}
}

// finish returns the first error. A parameter that was never read is an error too.
func (p *parameters) finish() error {
	for _, name := range slices.Sorted(maps.Keys(p.values)) {
		if !slices.Contains(p.known, name) {
			p.fail("unknown parameter %q; this stream has %s", name, strings.Join(p.known, ", "))
		}
	}
	return p.err
}
