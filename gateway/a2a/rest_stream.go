package a2a

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
)

// restStream filters the event stream of an HTTP+JSON request. An error becomes the HTTP status if it is the first event,
// and an event named error otherwise: clients of the protocol would take an unnamed event for an update of the task.
type restStream struct {
	http.ResponseWriter
	event bytes.Buffer // the event being written
	begun bool         // whether the response header has been sent
	ended bool         // whether an error was sent as the response
}

// WriteHeader delays the header of a stream until the first event.
func (s *restStream) WriteHeader(status int) {
	if status != http.StatusOK {
		s.begun = true
		s.ResponseWriter.WriteHeader(status)
	}
}

// Write buffers the bytes of an event and sends the event once it is complete.
func (s *restStream) Write(data []byte) (int, error) {
	if !strings.HasPrefix(s.Header().Get("Content-Type"), "text/event-stream") {
		s.begun = true
		return s.ResponseWriter.Write(data)
	}
	s.event.Write(data)
	if !bytes.HasSuffix(data, []byte("\n\n")) {
		return len(data), nil
	}
	return len(data), s.send()
}

// send sends the buffered event.
func (s *restStream) send() error {
	defer s.event.Reset()
	if s.ended {
		return nil
	}
	text, status := errorOf(s.event.Bytes())
	var err error
	switch {
	case text != nil && !s.begun:
		s.begun, s.ended = true, true
		s.Header().Set("Content-Type", "application/json")
		s.ResponseWriter.WriteHeader(status)
		_, err = s.ResponseWriter.Write(append(text, '\n'))
	case text != nil:
		_, err = s.ResponseWriter.Write(append([]byte("event: error\n"), s.event.Bytes()...))
	default:
		s.begun = true
		_, err = s.ResponseWriter.Write(s.event.Bytes())
	}
	return err
}

// errorOf returns the error in an event with its HTTP status, or nil if the event is not an error.
func errorOf(event []byte) (text []byte, status int) {
	_, data, ok := bytes.Cut(event, []byte("data: "))
	if !ok || !bytes.HasPrefix(data, []byte(`{"error":`)) {
		return nil, 0
	}
	var body struct{ Error struct{ Code int } }
	if json.Unmarshal(data, &body) != nil || body.Error.Code < http.StatusBadRequest || body.Error.Code > 599 {
		return nil, 0
	}
	return bytes.TrimSpace(data), body.Error.Code
}

// Flush flushes the written events to the client.
func (s *restStream) Flush() {
	if s.begun {
		_ = http.NewResponseController(s.ResponseWriter).Flush()
	}
}

// Unwrap returns the wrapped writer, for http.ResponseController.
func (s *restStream) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// end sends the header of a stream that had no events.
func (s *restStream) end() {
	if !s.begun {
		s.ResponseWriter.WriteHeader(http.StatusOK)
	}
}
