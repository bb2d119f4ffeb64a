package container

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
)

const (
	// progressInterval is the minimum time between two lines about the bytes of one layer.
	progressInterval = 3 * time.Second
	// progressLayers bounds the layers whose state is kept; an image has at most 127.
	progressLayers = 256
	// progressLine bounds a line, in bytes.
	progressLine = 500
)

// message is one of the engine's progress messages of a pull or a load.
type message struct {
	Stream string `json:"stream"`
	Status string `json:"status"`
	ID     string `json:"id"`
	Detail struct {
		Current, Total int64
	} `json:"progressDetail"`
	Error       string `json:"error"`
	ErrorDetail struct {
		Message string `json:"message"`
	} `json:"errorDetail"`
}

// progress condenses the engine's messages, many a second, to few lines: one when a layer changes
// state, and one every few seconds about the bytes of a layer.
type progress struct {
	say    func(string)
	now    func() time.Time
	layers map[string]layer
}

type layer struct {
	status string
	saidAt time.Time
}

func newProgress(say func(string), now func() time.Time) *progress {
	return &progress{say: say, now: now, layers: map[string]layer{}}
}

// follow reads messages to the end of the stream. It returns the error reported by a message, if
// any.
func follow(r io.Reader, p *progress) error {
	decoder := json.NewDecoder(r)
	for {
		var m message
		switch err := decoder.Decode(&m); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if m.ErrorDetail.Message != "" {
			return errors.New(singleLine(m.ErrorDetail.Message))
		}
		if m.Error != "" {
			return errors.New(singleLine(m.Error))
		}
		p.add(m)
	}
}

// add processes one message.
func (p *progress) add(m message) {
	text := singleLine(m.Status + m.Stream)
	if text == "" {
		return
	}
	if m.ID == "" {
		p.say(text)
		return
	}
	at, known := p.layers[m.ID]
	now := p.now()
	if !known && len(p.layers) >= progressLayers || at.status == m.Status && now.Sub(at.saidAt) < progressInterval {
		return
	}
	if at.status == m.Status && m.Detail.Current == 0 {
		return
	}
	p.layers[m.ID] = layer{m.Status, now}
	line := singleLine(m.ID) + ": " + text
	switch current, total := float64(m.Detail.Current)/1e6, float64(m.Detail.Total)/1e6; {
	case current <= 0 || current >= total && total > 0:
	case total > 0:
		line += fmt.Sprintf(" %.1f of %.1f MB", current, total)
	default:
		line += fmt.Sprintf(" %.1f MB", current)
	}
	p.say(line)
}

// singleLine returns a text from the engine or a registry as one line without control characters,
// truncated to progressLine bytes.
func singleLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	text = strings.TrimSpace(text)
	if len(text) > progressLine {
		text = strings.ToValidUTF8(text[:progressLine], "") + "..."
	}
	return text
}
