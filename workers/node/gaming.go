package node

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

// GamingLabel is added to the labels of a node on whose machine a user plays.
const GamingLabel = "gaming"

const (
	// processInterval is the time between looks at the programs that run;
	// processLimit is how long one may take.
	processInterval = 10 * time.Second
	processLimit    = 10 * time.Second
	// gamingLinger is how long a game counts after its last sign: a loading
	// screen, or one level and the next, are one game.
	gamingLinger = time.Minute
)

// GamingRules say when a user plays on a machine: a program of these names
// runs, or a GPU has been busy for a while without an attempt of ours on it.
// Ours are those of the nodes of this process: workers that share GPUs from
// several processes take each other's attempts for a game.
type GamingRules struct {
	// Processes are names of programs, upper and lower case alike; * and ? stand
	// for any characters and any one. None: programs are not looked at.
	Processes []string
	// GPULoad is from how much use of a GPU on it counts as busy, in percent; 0: GPUs are not looked at.
	GPULoad float64
	// GPUFor is for how long it must be so.
	GPUFor time.Duration
}

// DefaultGamingRules know what runs beside games, whatever they are called, as
// long as they run: the overlay of Steam, the compositor of handhelds and the
// wrapper of Lutris. Launchers do not count, since they stay when the game is over.
// A desktop uses a GPU for a moment; 40% for half a minute is more than that.
func DefaultGamingRules() *GamingRules {
	return &GamingRules{
		Processes: []string{"gameoverlayui", "gameoverlayui.exe", "gameoverlayui64.exe", "gamescope", "gamescope-wl", "lutris-wrapper*", "retroarch", "retroarch.exe"},
		GPULoad:   40,
		GPUFor:    30 * time.Second,
	}
}

// Validate says what is wrong with the rules.
func (r *GamingRules) Validate() error {
	for _, p := range r.Processes {
		if _, err := path.Match(p, ""); err != nil || p == "" {
			return fmt.Errorf("name of a game's process %q: use the name of a program, in which * and ? may stand for characters", p)
		}
	}
	if r.GPULoad < 0 || r.GPULoad > 100 || r.GPUFor < 0 {
		return fmt.Errorf("GPU load of a game: %g%% for %s makes no sense", r.GPULoad, r.GPUFor)
	}
	return nil
}

// game returns the first of the names that is a game's; empty: none is.
func (r *GamingRules) game(names []string) string {
	for _, name := range names {
		lower := strings.ToLower(name)
		for _, pattern := range r.Processes {
			pattern = strings.ToLower(pattern)
			if ok, _ := path.Match(pattern, lower); ok { // the pattern was checked
				return name
			}
		}
	}
	return ""
}

// gaming detects games. It is guarded by the probe's lock.
type gaming struct {
	rules     GamingRules
	processes *background[[]string]
	use       func(gpu int32) (held bool, grants int64)

	reading int64 // GPU reading that was looked at last
	gpus    map[int32]*gpuLoad
	seen    time.Time // newest sign of a game
	sign    string
}

// gpuLoad is how a GPU is used without us.
type gpuLoad struct {
	grants int64
	since  time.Time // busy since then; zero: it is not
}

func newGaming(rules GamingRules, r Readers, now func() time.Time, use func(int32) (bool, int64)) *gaming {
	return &gaming{
		rules: rules, use: use, gpus: map[int32]*gpuLoad{},
		processes: &background[[]string]{every: processInterval, limit: processLimit, now: now, read: func(ctx context.Context) ([]string, error) {
			return r.Processes(ctx)
		}},
	}
}

// detect reports whether a user plays, and by which sign. gpus are the figures
// of the reading of that number.
func (g *gaming) detect(now time.Time, gpus []*v1.GpuSnapshot, reading int64) (sign string, err error) {
	if len(g.rules.Processes) > 0 {
		var names []string
		if names, _, err = g.processes.latest(); err == nil {
			if name := g.rules.game(names); name != "" {
				g.seen, g.sign = now, "process "+name
			}
		}
	}
	if g.rules.GPULoad > 0 && reading != g.reading {
		g.reading = reading
		if busy := g.busyGPU(now, gpus); busy >= 0 {
			g.seen, g.sign = now, fmt.Sprintf("load on GPU %d", busy)
		}
	}
	if g.seen.IsZero() || now.Sub(g.seen) > gamingLinger {
		return "", err
	}
	return g.sign, err
}

// busyGPU returns the index of a GPU that has been busy for long enough; -1:
// none. One that an attempt holds, or has held since the reading before, counts from anew.
func (g *gaming) busyGPU(now time.Time, gpus []*v1.GpuSnapshot) int32 {
	found := int32(-1)
	for _, s := range gpus {
		load, known := g.gpus[s.GetIndex()]
		if !known {
			load = &gpuLoad{}
			g.gpus[s.GetIndex()] = load
		}
		held, grants := g.use(s.GetIndex())
		switch {
		case held || grants != load.grants || s.GetUsagePercent() < g.rules.GPULoad:
			load.since, load.grants = time.Time{}, grants
		case load.since.IsZero():
			load.since = now
		}
		if !load.since.IsZero() && now.Sub(load.since) >= g.rules.GPUFor {
			found = s.GetIndex()
		}
	}
	return found
}

// labels are those given, sorted, with the one for a game.
func labels(given []string, playing bool) []string {
	all := slices.Clone(given)
	if playing {
		all = append(all, GamingLabel)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
