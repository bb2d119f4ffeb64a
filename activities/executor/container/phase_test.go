package container

import (
	"errors"
	"testing"

	"switchyard/activities/executor"
)

// What may be done to a container depends on its phase.
func TestPhaseRefusesWhatItDoesNotAllow(t *testing.T) {
	t.Parallel()
	begin := map[string]func(p *phase) error{
		"steer":   func(p *phase) error { return p.beginSteer(true) },
		"capture": func(p *phase) error { _, err := p.beginCapture(); return err },
		"restart": func(p *phase) error {
			_, err := p.beginRestart(nil, func() *restart { return &restart{} })
			return err
		},
	}
	gone := map[string]error{"steer": executor.ErrNotRunning, "capture": executor.ErrNotRunning, "restart": executor.ErrNotRunning}
	tests := map[string]struct {
		phase   *phase
		refused map[string]error // nil stands for any *executor.Refusal
	}{
		"running":    {&phase{}, nil},
		"paused":     {&phase{paused: true}, nil},
		"over":       {&phase{over: true}, gone},
		"stopping":   {&phase{stopping: true}, gone},
		"restarting": {&phase{restarting: &restart{}}, map[string]error{"capture": nil}},
		"capturing":  {&phase{capturing: true, paused: true}, map[string]error{"steer": errCapturing, "capture": nil, "restart": errCapturing}},
	}
	for name, test := range tests {
		for action, do := range begin {
			p := &phase{
				over: test.phase.over, stopping: test.phase.stopping, paused: test.phase.paused,
				capturing: test.phase.capturing, restarting: test.phase.restarting,
			}
			err := do(p)
			want, refused := test.refused[action]
			_, isRefusal := errors.AsType[*executor.Refusal](err)
			if refused != (err != nil) || want != nil && !errors.Is(err, want) || refused && want == nil && !isRefusal {
				t.Errorf("%s while %s: got error %v, want %v", action, name, err, want)
			}
		}
	}
}

// An end with which a restart begins is not the end of the container.
func TestPhaseEndsOnce(t *testing.T) {
	t.Parallel()
	p := &phase{restarts: 1}
	if _, ended := p.end(exit{code: 137}, 0, false); ended || p.isEnding() {
		t.Error("the end of a restart ended the container")
	}
	p.endRestart(errors.New("no space"))
	if e, ended := p.end(exit{code: 137}, 1, false); !ended || e.err == nil || !p.isEnding() {
		t.Errorf("got %+v, %v; want an end because of the failed restart", e, ended)
	}
	p.leave(func() { t.Error("an ended container was left") })
}

func TestRestartInProgressIsShared(t *testing.T) {
	t.Parallel()
	p, starts := &phase{}, 0
	start := func() *restart { starts++; return &restart{} }
	first, err := p.beginRestart(nil, start)
	second, again := p.beginRestart(errors.New("refused"), start)
	if err != nil || again != nil || first != second || starts != 1 {
		t.Errorf("%d restarts have begun, errors %v and %v", starts, err, again)
	}
	p.endRestart(nil)
	if third, err := p.beginRestart(nil, start); err != nil || third == first {
		t.Errorf("a restart that has ended is shared, error %v", err)
	}
}
