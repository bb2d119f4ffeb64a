package runview

import (
	"testing"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// TestStatusCacheIsBounded checks that the status of a run is cached for a limited time and within the size limit, as long
// as it is current.
func TestStatusCacheIsBounded(t *testing.T) {
	var m statusCache
	status := &historyv1.StatusResponse{Revision: 3}
	m.add("r-1", "x", 5, status)
	if got := m.get("r-1", "x"); got == nil || got.Status != status || got.events != 5 {
		t.Errorf("got %v", got)
	}
	if got := m.get("r-1", "y"); got != nil {
		t.Errorf("of another execution: %v", got)
	}
	large := &historyv1.StatusResponse{Run: &v1.Run{Error: string(make([]byte, cacheBytes*2/3))}}
	m.add("r-2", "x", 1, large)
	m.add("r-3", "x", 1, large)
	if m.get("r-2", "x") == nil || m.get("r-3", "x") != nil {
		t.Error("it does not keep to its size")
	}
	m.add("r-2", "x", 2, status)
	if m.add("r-3", "x", 1, large); m.get("r-3", "x") == nil {
		t.Error("what was replaced takes room")
	}
	for _, s := range m.runs {
		s.at = s.at.Add(-2 * cacheTime)
	}
	if m.get("r-1", "x") != nil || len(m.runs) != 0 || m.bytes != 0 {
		t.Errorf("after %s: %v", 2*cacheTime, m.runs)
	}
}
