package logs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
)

const (
	// entryBytes bounds the output in one entry.
	entryBytes = 64 << 10
	// entryCost is the space of an entry in a chunk besides its output. It exceeds the encoded size of the other fields,
	// so that a chunk of many small entries is bounded, too.
	entryCost = 64
	// togetherWithin is how long output of a stream joins the same entry and shares its time.
	togetherWithin = 10 * time.Millisecond
)

// chunk collects output until it is encoded. The zero value is empty.
type chunk struct {
	data    []byte
	entries []entry
	// names is the total size of the printers' names and the positions.
	names int
}

// entry is a piece of a chunk's data. It extends from the end of the previous entry to its own end.
type entry struct {
	stream string
	by     printer
	at     time.Time
	end    int
	// position is where the entry begins in the source of the output, or "" if that is unknown.
	position string
}

// printer is the instance of a batch that prints. It is empty if the key of the chunk already names the printer.
type printer struct {
	task           string
	attempt, claim int32
	// notice is set if the system prints.
	notice bool
}

// room returns how much output a new entry of a chunk of limit bytes can hold. 0 means that the chunk is full.
func (c *chunk) room(by printer, position string, limit int) int {
	return max(0, limit-len(c.data)-(len(c.entries)+1)*entryCost-c.names-len(by.task)-len(position))
}

// add adds as much of p as there is room for and returns that size. If position is not "", p begins a new entry.
func (c *chunk) add(stream string, by printer, at time.Time, position string, p []byte, limit int) int {
	p = p[:min(len(p), c.room(by, position, limit), entryBytes)]
	if len(p) == 0 {
		return 0
	}
	if last := len(c.entries) - 1; last >= 0 && position == "" && c.entries[last].stream == stream && c.entries[last].by == by &&
		at.Sub(c.entries[last].at) < togetherWithin && len(c.data)+len(p)-c.start(last) <= entryBytes {
		c.data = append(c.data, p...)
		c.entries[last].end = len(c.data)
		return len(p)
	}
	c.data = append(c.data, p...)
	c.entries = append(c.entries, entry{stream, by, at, len(c.data), position})
	c.names += len(by.task) + len(position)
	return len(p)
}

func (c *chunk) start(entry int) int {
	if entry == 0 {
		return 0
	}
	return c.entries[entry-1].end
}

func (c *chunk) empty() bool { return len(c.entries) == 0 }

// clear empties the chunk. It keeps the memory only if most of it was in use, so that a task that printed much once and
// is quiet now costs little.
func (c *chunk) clear() {
	if cap(c.data) > 4*len(c.data) {
		*c = chunk{}
		return
	}
	c.data, c.entries, c.names = c.data[:0], c.entries[:0], 0
}

// encode appends the records of the chunk to out.
func (c *chunk) encode(out []byte) []byte {
	var m v1.LogEntry
	for i, e := range c.entries {
		m.Stream, m.Time, m.Data = e.stream, timestamppb.New(e.at), c.data[c.start(i):e.end]
		m.Task, m.Attempt, m.Claim, m.Notice = e.by.task, e.by.attempt, e.by.claim, e.by.notice
		m.Position = e.position
		out = appendRecord(out, &m)
	}
	return out
}

// encodedSize returns an upper bound of the size that encode appends.
func (c *chunk) encodedSize() int { return len(c.data) + entryCost*len(c.entries) + c.names }

func appendRecord(out []byte, m *v1.LogEntry) []byte {
	out = binary.AppendUvarint(out, uint64(proto.Size(m)))
	out, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(out, m)
	if err != nil {
		// Marshal fails only for strings that are not UTF-8, and stream names always are.
		panic(fmt.Sprintf("logs: encode an entry: %v", err))
	}
	return out
}

// endMark is the record that ends a log.
const endMark = 0

var errMalformed = errors.New("malformed chunk")

// CheckChunk returns an error unless p is a chunk that Read can read.
func CheckChunk(p []byte) error {
	_, _, err := decode(p)
	return err
}

// decode reads the records of a chunk. ended is true if the last one is the end mark.
func decode(p []byte) (entries []*v1.LogEntry, ended bool, err error) {
	for len(p) > 0 {
		size, n := protowire.ConsumeVarint(p)
		if n < 0 || ended || size > uint64(len(p)-n) {
			return nil, false, errMalformed
		}
		record := p[n : n+int(size)]
		p = p[n+int(size):]
		if size == endMark {
			ended = true
			continue
		}
		m := new(v1.LogEntry)
		if err := proto.Unmarshal(record, m); err != nil {
			return nil, false, fmt.Errorf("%w: %w", errMalformed, err)
		}
		entries = append(entries, m)
	}
	return entries, ended, nil
}
