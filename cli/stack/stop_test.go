package stack

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestStopGivesNodesTheGraceOfTheirTasks checks that a part may take as long as it says in addition to its time limit.
func TestStopGivesNodesTheGraceOfTheirTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := closer{name: "nodes", timeout: time.Second, extra: func() time.Duration { return time.Minute }, stop: func() error {
			time.Sleep(time.Minute)
			return nil
		}}
		s := &Stack{logger: slog.New(slog.DiscardHandler)}
		s.StopWithin(time.Hour)
		if err := s.stopPart(c); err != nil {
			t.Error(err)
		}
	})
}

// TestStopAbandonsAPartThatHangs checks that Stop stops the parts before and after one that never stops.
func TestStopAbandonsAPartThatHangs(t *testing.T) {
	synctest.Test(t, stopPastAHangingPart)
}

func stopPastAHangingPart(t *testing.T) {
	s := &Stack{logger: slog.New(slog.DiscardHandler), ignoreStart: func() bool { return true }}
	hanging, stopped := make(chan struct{}), map[string]bool{}
	defer close(hanging)
	for _, name := range []string{"first", "last"} {
		s.addCloser(name, func() error { stopped[name] = true; return nil })
		if name == "first" {
			s.addCloser("deaf", func() error { <-hanging; return nil })
		}
	}
	s.StopWithin(time.Millisecond)
	s.StopWithin(time.Hour) // has no effect, because an earlier deadline is set
	err := s.Stop()
	if err == nil || !strings.Contains(err.Error(), "stop deaf: it has not stopped") {
		t.Errorf("the error is %v", err)
	}
	if !stopped["first"] || !stopped["last"] {
		t.Errorf("stopped: %v", stopped)
	}
	if err := s.Stop(); err != nil {
		t.Errorf("the second stop: %v", err)
	}
}
