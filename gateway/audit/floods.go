package audit

import (
	"sync"
	"time"
)

const (
	// floodSecond is how many refusals of one address have entries in a second.
	floodSecond = 5
	// maxFlooding bounds the addresses that are remembered.
	maxFlooding = 4096
)

// floods bounds the entries about refused calls, which anyone can cause. It is safe for concurrent use.
type floods struct {
	mu sync.Mutex
	by map[string]*flood // by address
}

// flood counts the refusals of an address in a second.
type flood struct {
	began   time.Time
	count   int
	omitted int32 // that no entry has counted
}

// admit reports whether a refusal at a time has an entry, and how many before it have none.
func (f *floods) admit(address string, now time.Time) (omitted int32, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.by == nil || len(f.by) >= maxFlooding {
		f.by = map[string]*flood{}
	}
	of := f.by[address]
	if of == nil {
		of = &flood{began: now}
		f.by[address] = of
	}
	if now.Sub(of.began) >= time.Second {
		of.began, of.count = now, 0
	}
	if of.count >= floodSecond {
		of.omitted++
		return 0, false
	}
	of.count++
	omitted, of.omitted = of.omitted, 0
	return omitted, true
}
