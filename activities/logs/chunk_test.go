package logs

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
)

func FuzzDecode(f *testing.F) {
	var c chunk
	c.add(Stdout, printer{}, time.Unix(1, 2), "line 7", []byte("out"), 1<<20)
	c.add(Stderr, printer{task: "each[3]", attempt: 1}, time.Unix(1, 3), "", []byte("err"), 1<<20)
	whole := append(c.encode(nil), endMark)
	f.Add(whole)
	f.Add(whole[:len(whole)-3])
	f.Add([]byte{0})
	f.Add([]byte{0, 0})
	f.Add(bytes.Repeat([]byte{0xff}, 12))
	f.Fuzz(func(t *testing.T, p []byte) {
		entries, ended, err := decode(p)
		if err != nil {
			if !errors.Is(err, errMalformed) || entries != nil || ended {
				t.Fatalf("%v, %t, %v", entries, ended, err)
			}
			return
		}
		// The entries are encoded and decoded again. An empty entry, which the Writer never produces, would be read as
		// the end.
		var again []byte
		entries = slices.DeleteFunc(entries, func(e *v1.LogEntry) bool { return proto.Size(e) == 0 })
		for _, e := range entries {
			again = appendRecord(again, e)
		}
		if ended {
			again = append(again, endMark)
		}
		got, gotEnded, err := decode(again)
		if err != nil || gotEnded != ended || !slices.EqualFunc(got, entries, func(a, b *v1.LogEntry) bool { return proto.Equal(a, b) }) {
			t.Fatalf("%d entries, ended %t, come back as %d, %t, %v", len(entries), ended, len(got), gotEnded, err)
		}
	})
}
