package audit

import (
	"net/netip"
	"sync"
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

const (
	// floodTime is the period over which refusals are counted. In each period, floodSome refusals per address and floodAll
	// in total get entries.
	floodTime           = time.Second
	floodSome, floodAll = 5, 200
	// maxFlooding bounds the number of addresses that are tracked.
	maxFlooding = 4096
)

// floods bounds the number of entries about refused calls, which anyone can cause. It is safe for concurrent use.
type floods struct {
	mu  sync.Mutex
	all flood
	by  map[string]*flood // by network
}

// flood counts the refusals of a network in one floodTime.
type flood struct {
	began time.Time
	count int
	// omitted is the number of refusals without an entry, and last is the newest of them.
	omitted int32
	last    *v1.AuditEntry
}

// admit reports whether to store the entry of a refusal. An admitted entry also counts the omitted ones before it.
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
			network = "" // shared by all networks beyond the limit
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

// begin resets the count once floodTime has passed.
func (f *flood) begin(now time.Time) {
	if age := now.Sub(f.began); age >= floodTime || age < 0 {
		f.began, f.count = now, 0
	}
}

// sweep removes the floods that began before a given time. For each it returns the last omitted entry, which counts the
// other omitted ones.
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

// networkOf returns an address, or the /64 network of an IPv6 address, because one host may use all of it.
func networkOf(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil || ip.Unmap().Is4() {
		return address
	}
	network, _ := ip.WithZone("").Prefix(64) // IPv6 addresses have this prefix length, so there is no error
	return network.String()
}
