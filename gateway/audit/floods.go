package audit

import (
	"net/netip"
	"sync"
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

const (
	// floodTime is the time in which refusals are counted: floodSome of one address have entries, and floodAll of all.
	floodTime           = time.Second
	floodSome, floodAll = 5, 200
	// maxFlooding bounds the addresses that are remembered.
	maxFlooding = 4096
)

// floods bounds the entries about refused calls, which anyone can cause. It is safe for concurrent use.
type floods struct {
	mu  sync.Mutex
	all flood
	by  map[string]*flood // by network
}

// flood counts the refusals of a network in a floodTime.
type flood struct {
	began time.Time
	count int
	// omitted is how many have no entry, and last the newest of them.
	omitted int32
	last    *v1.AuditEntry
}

// admit reports whether an entry about a refusal is stored, and has it count those before it that are not.
func (f *floods) admit(e *v1.AuditEntry) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	network := networkOf(e.GetFrom())
	of := f.by[network]
	if of == nil {
		if f.by == nil {
			f.by = map[string]*flood{}
		}
		if len(f.by) >= maxFlooding {
			network = "" // of all that there is no room for
		}
		if of = f.by[network]; of == nil {
			of = &flood{}
			f.by[network] = of
		}
	}
	now := e.GetAt().AsTime()
	of.begin(now)
	f.all.begin(now)
	if of.count >= floodSome || f.all.count >= floodAll {
		of.omitted++
		of.last = e
		return false
	}
	of.count++
	f.all.count++
	e.Omitted, of.omitted, of.last = of.omitted, 0, nil
	return true
}

// begin resets the count once its time has passed.
func (f *flood) begin(now time.Time) {
	if age := now.Sub(f.began); age >= floodTime || age < 0 {
		f.began, f.count = now, 0
	}
}

// sweep forgets the floods that began before a time. For each it returns the last entry that was left out, which counts the
// others.
func (f *floods) sweep(before time.Time) (last []*v1.AuditEntry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for network, of := range f.by {
		if of.began.After(before) {
			continue
		}
		if of.last != nil {
			of.last.Omitted = of.omitted - 1
			last = append(last, of.last)
		}
		delete(f.by, network)
	}
	return last
}

// networkOf returns an address, or the /64 network of an IPv6 address, all of which one host may have.
func networkOf(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil || ip.Unmap().Is4() {
		return address
	}
	network, _ := ip.WithZone("").Prefix(64) // which such an address has
	return network.String()
}
