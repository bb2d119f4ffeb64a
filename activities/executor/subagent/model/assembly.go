package model

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
)

const (
	// maxTextBytes bounds the text, arguments and thinking of a reply in total.
	maxTextBytes = 1 << 20
	// bytesPerBlock is what a block counts towards maxTextBytes besides its content.
	bytesPerBlock = 64
	// bytesPerToken serves to estimate usage that a provider does not report.
	bytesPerToken = 4
)

// assembly assembles a reply from the pieces of a stream.
type assembly struct {
	onText  func(string)
	size    int
	blocks  []*block
	callIDs map[string]bool // of all calls in the conversation
	request int             // bytes
	model   string
	stop    Stop // empty until the provider has named one
	usage   Usage

	isRefusal bool // whether the text explains a refusal
}

// block is a part of a reply that is being assembled: a text, a call, or an object that only the provider understands.
type block struct {
	text   strings.Builder // or the arguments of the call
	call   *Call
	opaque map[string]json.RawMessage
	pieces map[string]*strings.Builder // of string fields in opaque
}

// newAssembly returns an empty assembly for the reply to a request.
func newAssembly(r Request, onText func(string)) *assembly {
	a := &assembly{onText: onText, callIDs: map[string]bool{}, model: r.Model, request: len(r.System)}
	for _, t := range r.Tools {
		a.request += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			a.request += len(p.Text) + len(p.Opaque)
			if p.Call != nil {
				a.callIDs[p.Call.ID] = true
				a.request += len(p.Call.Name) + len(p.Call.Arguments)
			}
			if p.Result != nil {
				a.request += len(p.Result.Text)
			}
		}
	}
	return a
}

// grow counts n bytes of content.
func (a *assembly) grow(n int) error {
	if a.size += n; a.size > maxTextBytes {
		return errEndless{fmt.Sprintf("%d MiB of text", maxTextBytes>>20)}
	}
	return nil
}

// add begins a block.
func (a *assembly) add(b *block) error {
	a.blocks = append(a.blocks, b)
	return a.grow(bytesPerBlock)
}

// addText appends a piece to a text and passes it on.
func (a *assembly) addText(b *block, piece string) error {
	if piece == "" {
		return nil
	}
	if err := a.grow(len(piece)); err != nil {
		return err
	}
	b.text.WriteString(piece)
	if a.onText != nil {
		a.onText(piece)
	}
	return nil
}

// addArguments appends a piece to the arguments of a call.
func (a *assembly) addArguments(b *block, piece string) error {
	b.text.WriteString(piece)
	return a.grow(len(piece))
}

// addOpaque appends a piece to a string field of an opaque block.
func (a *assembly) addOpaque(b *block, field, piece string) error {
	if b.pieces[field] == nil {
		if b.pieces == nil {
			b.pieces = map[string]*strings.Builder{}
		}
		b.pieces[field] = &strings.Builder{}
		var first string
		_ = json.Unmarshal(b.opaque[field], &first) // a block may arrive with the start of the string
		b.pieces[field].WriteString(first)
	}
	b.pieces[field].WriteString(piece)
	return a.grow(len(piece))
}

// whole returns the reply, or nil if it has not ended.
func (a *assembly) whole() *Reply {
	if a.stop == "" {
		return nil
	}
	r := &Reply{Message: Message{Role: Assistant, Parts: []Part{}}, Usage: a.usage, Stop: a.stop, Model: a.model}
	calls := 0
	for _, b := range a.blocks {
		switch {
		case b.call != nil:
			calls++
			call := *b.call
			call.ID = a.uniqueCallID(call.ID)
			call.Arguments, call.Broken = parseArguments(b.text.String())
			r.Message.Parts = append(r.Message.Parts, Part{Call: &call})
		case b.opaque != nil:
			r.Message.Parts = append(r.Message.Parts, Part{Opaque: b.object()})
		case b.text.Len() > 0:
			r.Message.Parts = append(r.Message.Parts, Part{Text: b.text.String()})
		}
	}
	switch {
	case a.isRefusal:
		r.Stop = StopRefusal
	case calls > 0 && r.Stop == StopEnd: // some servers report it like this
		r.Stop = StopTools
	case calls == 0 && r.Stop == StopTools:
		r.Stop = StopEnd
	}
	if a.usage == (Usage{}) { // some servers send zeros
		r.Usage = Usage{InputTokens: int64(a.request / bytesPerToken), OutputTokens: int64(a.size / bytesPerToken)}
	}
	return r
}

// uniqueCallID returns the ID of a call, or a new one if the provider sent none or one that the conversation already
// contains.
func (a *assembly) uniqueCallID(id string) string {
	if id == "" || a.callIDs[id] {
		id = "call_" + rand.Text()
	}
	a.callIDs[id] = true
	return id
}

// object returns an opaque block as JSON.
func (b *block) object() json.RawMessage {
	for field, text := range b.pieces {
		b.opaque[field] = encodeJSON(text.String())
	}
	return encodeJSON(b.opaque)
}

// encodeJSON encodes a value whose parts are all valid JSON.
func encodeJSON(value any) json.RawMessage {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // raw parts come from valid JSON
	}
	return text
}
