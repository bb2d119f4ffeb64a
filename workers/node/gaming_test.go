package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"
)

func TestGamesByName(t *testing.T) {
	rules := GamingRules{Processes: []string{"GameOverlayUI", "lutris-wrapper*", "cs?"}}
	for name, want := range map[string]bool{
		"gameoverlayui": true, "GAMEOVERLAYUI": true, "gameoverlayui2": false, "lutris-wrapper: Doom": true,
		"cs2": true, "cs": false, "steam": false, "": false,
	} {
		if got := rules.game([]string{"init", name}) != ""; got != want {
			t.Errorf("%q: got %v", name, got)
		}
	}
	if err := DefaultGamingRules().Validate(); err != nil {
		t.Error(err)
	}
	for _, bad := range []GamingRules{{Processes: []string{"["}}, {Processes: []string{""}}, {GPULoad: 101}, {GPULoad: -1}, {GPUFor: -1}} {
		if bad.Validate() == nil {
			t.Errorf("%+v is valid", bad)
		}
	}
}

// playground is a machine on which a test controls the running programs and the load of the GPUs.
type playground struct {
	probe     *Probe
	machine   *Machine
	processes []string
	broken    error
	load      []int
}

func newPlayground(t *testing.T, rules *GamingRules) *playground {
	g := &playground{load: []int{0, 0}}
	r := newFakeMachine().readers()
	r.Processes = func(context.Context) ([]string, error) { return g.processes, g.broken }
	r.Command = func(context.Context, string, ...string) ([]byte, error) {
		var out []byte
		for i, load := range g.load {
			out = fmt.Appendf(out, "%d, NVIDIA GeForce RTX 4090, 24564, 900, %d, 00000000:0%d:00.0\n", i, load, i+1)
		}
		return out, nil
	}
	logger := slog.New(slog.NewTextHandler(t.Output(), nil))
	g.machine = Measure(t.Context(), ProbeOptions{Readers: r, Logger: logger})
	g.probe = NewProbe(ProbeOptions{Readers: r, Machine: g.machine, Labels: []string{"home", "desktop"}, Gaming: rules, Logger: logger})
	return g
}

// after takes snapshots of the node for a while, and reports whether the last one says that a user plays.
func (g *playground) after(t *testing.T, d time.Duration) bool {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		g.probe.Snapshot(t.Context())
		time.Sleep(2 * time.Second)
		synctest.Wait()
	}
	s := g.probe.Snapshot(t.Context())
	synctest.Wait() // let background readings finish before the test changes anything
	want := []string{"desktop", "home"}
	if s.GetGaming() {
		want = []string{"desktop", "gaming", "home"}
	}
	if !slices.Equal(s.GetLabels(), want) {
		t.Errorf("gaming %v, labels %v", s.GetGaming(), s.GetLabels())
	}
	return s.GetGaming()
}

func TestGamingByProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPlayground(t, nil)
		g.processes = []string{"systemd", "steam", "bash"}
		if g.after(t, 30*time.Second) {
			t.Error("a launcher is a game")
		}
		g.processes = append(g.processes, "gameoverlayui")
		if !g.after(t, 20*time.Second) {
			t.Error("a game is none")
		}
		g.broken = errors.New("no more files")
		if !g.after(t, 20*time.Second) {
			t.Error("the game is over because it cannot be seen")
		}
		g.processes, g.broken = g.processes[:3], nil
		if !g.after(t, 30*time.Second) {
			t.Error("the game is over at once")
		}
		if g.after(t, 60*time.Second) {
			t.Error("the game is never over")
		}
	})
}

func TestGamingByLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPlayground(t, nil)
		g.load[1] = 39
		if g.after(t, 2*time.Minute) {
			t.Error("a desktop is a game")
		}
		g.load[1] = 95
		if g.after(t, 20*time.Second) {
			t.Error("a moment of load is a game")
		}
		if !g.after(t, 30*time.Second) {
			t.Error("load is no game")
		}
		g.load[1] = 0
		if !g.after(t, 40*time.Second) || g.after(t, 40*time.Second) {
			t.Error("the game is over too early or never")
		}
	})
}

// TestOwnAttemptsDoNotCountAsGames checks that GPUs in use by our attempts are not a game, however short
// the attempts are.
func TestOwnAttemptsDoNotCountAsGames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPlayground(t, nil)
		l := NewLedger(g.machine, 4)
		g.load[0] = 100
		release, err := l.Acquire(t.Context(), "long", Need{GPUs: []int32{0}})
		if err != nil {
			t.Fatal(err)
		}
		if g.after(t, 5*time.Minute) {
			t.Error("our attempt is a game")
		}
		// A game on the other GPU still counts.
		g.load[1] = 100
		if !g.after(t, time.Minute) {
			t.Error("a game beside our attempt is none")
		}
		g.load[1] = 0
		g.after(t, 2*time.Minute)
		release()
		for i := range 40 { // attempts that end before the next heartbeat
			release, err := l.Acquire(t.Context(), fmt.Sprint(i), Need{GPUs: []int32{0}})
			if err != nil {
				t.Fatal(err)
			}
			release()
			if g.after(t, 5*time.Second) {
				t.Fatal("our short attempts are a game")
			}
		}
		if !g.after(t, time.Minute) {
			t.Error("load that stays when our attempts are over is no game")
		}
	})
}

func TestGamingOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPlayground(t, &GamingRules{})
		g.processes, g.load = []string{"gamescope"}, []int{100, 100}
		if g.after(t, 3*time.Minute) {
			t.Error("found a game without rules")
		}
	})
}

func TestProcNames(t *testing.T) {
	proc := fstest.MapFS{
		"1/comm":        {Data: []byte("systemd\n")},
		"1/cmdline":     {Data: []byte("/sbin/init\x00splash\x00")},
		"20/comm":       {Data: []byte("Cyberpunk2077.e\n")},
		"20/cmdline":    {Data: []byte("Z:\\games\\bin\\Cyberpunk2077.exe\x00--x\x00")},
		"300/comm":      {Data: []byte("kworker/0:1-eve\n")},
		"300/cmdline":   {},
		"4000/cmdline":  {Data: []byte("gone")},
		"self/comm":     {Data: []byte("self\n")},
		"meminfo":       {},
		"50000/comm":    {Data: []byte("lutris-wrapper: \n")},
		"50000/cmdline": {Data: []byte("lutris-wrapper: Doom")},
	}
	got, err := procNames(t.Context(), proc)
	slices.Sort(got)
	want := []string{"Cyberpunk2077.e", "Cyberpunk2077.exe", "kworker/0:1-eve", "lutris-wrapper: ", "lutris-wrapper: Doom", "systemd"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := procNames(ctx, proc); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	// This test process is running, on any system.
	names, err := systemProcesses(t.Context())
	if err != nil || len(names) == 0 {
		t.Errorf("%d processes, %v", len(names), err)
	}
}
