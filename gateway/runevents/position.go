package runevents

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"strings"

	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// Position is a position in the events of a run: a generation, and within it the number of the next event of the run itself
// and of each child that carries a part of a large fan-out. The zero value is the position before the first event. A
// Position is immutable.
type Position struct {
	generation int32
	run        int64
	parts      map[string]int64 // by the first instance of the part, such as "each[500]"
}

// positionMark separates the id of an event from the rest of the text of a position.
const positionMark = "~"

// maxPosition is the maximum length of a position's text. Proxies refuse requests with much longer headers.
const maxPosition = 6 << 10

// positionRest is the part of a position's text after the event id.
type positionRest struct {
	Run   int64            `json:"r,omitempty"`
	Parts map[string]int64 `json:"p,omitempty"`
}

// GenerationStart returns the position before the first event of a generation.
func GenerationStart(generation int32) Position { return Position{generation: generation} }

// Generation returns the generation of the position.
func (p Position) Generation() int32 { return p.generation }

// IsStart reports whether the position is before the first event of the first generation.
func (p Position) IsStart() bool { return p.generation == 0 && p.run == 0 && len(p.parts) == 0 }

// next returns the number of the next event of the run itself if part is "", or of a part.
func (p Position) next(part string) int64 {
	if part == "" {
		return p.run
	}
	return p.parts[part]
}

// IsPast reports whether an event lies before the position.
func (p Position) IsPast(e *v1.Event) bool {
	generation, part, number, ok := names.ParseEventID(e.GetId())
	return ok && (generation < p.generation || generation == p.generation && number < p.next(part))
}

// After returns p advanced past an event.
func (p Position) After(e *v1.Event) Position {
	generation, part, number, ok := names.ParseEventID(e.GetId())
	switch {
	case !ok || generation < p.generation:
		return p
	case generation > p.generation:
		p = GenerationStart(generation)
	}
	if number < p.next(part) {
		return p
	}
	if part == "" {
		p.run = number + 1
		return p
	}
	p.parts = maps.Clone(p.parts)
	if p.parts == nil {
		p.parts = map[string]int64{}
	}
	p.parts[part] = number + 1
	return p
}

// Covers reports whether every event before q also lies before p.
func (p Position) Covers(q Position) bool {
	if p.generation != q.generation {
		return p.generation > q.generation
	}
	for part, next := range q.parts {
		if p.parts[part] < next {
			return false
		}
	}
	return p.run >= q.run
}

// Text returns the text of the position, which is after event e: the id of the event and, if children of the run have
// reported events, the positions in the other sources. It returns "" if the text would be too long.
func (p Position) Text(e *v1.Event) string {
	if len(p.parts) == 0 || e.GetId() == "" {
		return e.GetId()
	}
	rest, _ := json.Marshal(positionRest{p.run, p.parts}) // names and numbers cannot fail
	text := e.GetId() + positionMark + base64.RawURLEncoding.EncodeToString(rest)
	if len(text) > maxPosition {
		return ""
	}
	return text
}

// ParsePosition returns the position of a text. If the text is only an event id, the events of the other parts of a fan-out
// are read from the beginning.
func ParsePosition(text string) (Position, error) {
	id, encoded, hasRest := strings.Cut(text, positionMark)
	generation, _, _, ok := names.ParseEventID(id)
	if !ok {
		return Position{}, rpcerror.Invalid("%q is not an event id; event ids look like 0-12", text)
	}
	p := GenerationStart(generation)
	if hasRest {
		var rest positionRest
		data, err := base64.RawURLEncoding.DecodeString(encoded)
		if err != nil || json.Unmarshal(data, &rest) != nil || rest.Run < 0 {
			return Position{}, rpcerror.Invalid("the id of event %s was modified; send it unchanged", id)
		}
		for part, next := range rest.Parts {
			if _, _, ok := names.ParseInstanceName(part); !ok || next < 0 {
				return Position{}, rpcerror.Invalid("the id of event %s was modified; send it unchanged", id)
			}
		}
		p.run, p.parts = rest.Run, rest.Parts
	}
	return p.After(&v1.Event{Id: id}), nil
}
