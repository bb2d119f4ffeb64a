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
	// entryBytes is the most output that one entry holds.
	entryBytes = 64 << 10
	// entryCost is what an entry takes of a chunk besides its output: more than
	// its fields take encoded, so that a chunk of single bytes has a bound too.
	entryCost = 64
	// togetherWithin is how long what a stream prints joins one entry, and has one time.
	togetherWithin = 10 * time.Millisecond
)

// chunk gathers output until it is encoded. The zero value is empty.
type chunk struct {
	data    []byte
	entries []entry
	// names is what the names of printers and the positions take.
	names int
}

// entry is a piece of a chunk's data: from the end of the entry before to its own.
type entry struct {
	stream string
	by     printer
	at     time.Time
	end    int
	// position is where it begins in the source of the output, or "" if that is not known.
	position string
}

// printer is the instance of a batch that prints; none is named where the key of
// the chunk says who does.
type printer struct {
	task           string
	attempt, claim int32
	// notice says that it is the system.
	notice bool
}

// room is how much output a chunk of limit bytes takes in a new entry;
// none is left at 0.
func (c *chunk) room(by printer, position string, limit int) int {
	return max(0, limit-len(c.data)-(len(c.entries)+1)*entryCost-c.names-len(by.task)-len(position))
}

// add takes as much of p as there is room for and returns how much that was. With a position p begins an entry.
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

// clear empties the chunk. It keeps its memory only while that is put to use, so
// that a task which once printed much and is quiet now costs little.
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

// encodedSize is an upper bound of what encode appends.
func (c *chunk) encodedSize() int { return len(c.data) + entryCost*len(c.entries) + c.names }

func appendRecord(out []byte, m *v1.LogEntry) []byte {
	out = binary.AppendUvarint(out, uint64(proto.Size(m)))
	out, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(out, m)
	if err != nil {
		// Only a string that is not UTF-8 could be refused; the names of streams are.
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

// decode reads the records of a chunk; ended says that the last is the end mark.
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
