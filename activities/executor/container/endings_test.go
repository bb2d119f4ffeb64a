package container

import (
	"strconv"
	"syscall"
	"testing"

	"github.com/docker/docker/api/types/events"
)

// TestEngineEndsContainersByTheirStopSignal checks which signals of the engine count as its end of a container.
func TestEngineEndsContainersByTheirStopSignal(t *testing.T) {
	for _, test := range []struct {
		stop string
		sent syscall.Signal
		want bool
	}{
		{"", syscall.SIGTERM, true}, {"", syscall.SIGKILL, true}, {"", syscall.SIGINT, false},
		{"SIGINT", syscall.SIGINT, true}, {"SIGINT", syscall.SIGTERM, true}, {"SIGINT", syscall.SIGHUP, false},
		{"SIGRTMIN+3", 37, true}, {"SIGRTMIN+3", 38, false},
	} {
		s := &endings{of: map[string]ending{}, news: make(chan struct{})}
		s.watch("a", numberOf(test.stop))
		for _, m := range []events.Message{
			{Action: events.ActionStart, Actor: events.Actor{ID: "a"}},
			{Action: events.ActionKill, Actor: events.Actor{ID: "a", Attributes: map[string]string{"signal": strconv.Itoa(int(test.sent))}}},
		} {
			s.record(m)
		}
		if got := s.get("a").killed; got != test.want {
			t.Errorf("stop signal %q, signal %d: %v, want %v", test.stop, test.sent, got, test.want)
		}
	}
}
