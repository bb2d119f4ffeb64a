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

// GamingLabel is added to the labels of a node while a user plays on its machine.
const GamingLabel = "gaming"

const (
	// processInterval is the time between two checks of the running programs. processLimit bounds one
	// check.
	processInterval = 10 * time.Second
	processLimit    = 10 * time.Second
	// gamingLinger is how long a game counts as running after its last sign. It covers loading screens
	// and the time between levels.
	gamingLinger = time.Minute
)

// GamingRules determine when a user plays on a machine: a program with one of the names runs, or a GPU
// has been busy for a while although none of our attempts used it. Only attempts of this process count
// as ours: workers in several processes that share GPUs take each other's attempts for a game.
type GamingRules struct {
	// Processes are patterns for names of programs, regardless of case. * matches any characters, and ?
	// matches any single character. If there are none, programs are not checked.
	Processes []string
	// GPULoad is the percentage of use from which a GPU counts as busy. 0 means that GPUs are not
	// checked.
	GPULoad float64
	// GPUFor is how long a GPU must be busy.
	GPUFor time.Duration
}

// DefaultGamingRules returns rules that recognise programs that run only while a game runs, whatever the
// game is: the overlay of Steam, the compositor of handhelds and the wrapper of Lutris. Launchers do not
// count, because they keep running after the game. For the load, a desktop uses a GPU only for moments,
// so the limit is 40% for half a minute.
func DefaultGamingRules() *GamingRules {
	return &GamingRules{
		Processes: []string{"gameoverlayui", "gameoverlayui.exe", "gameoverlayui64.exe", "gamescope", "gamescope-wl", "lutris-wrapper*", "retroarch", "retroarch.exe"},
		GPULoad:   40,
		GPUFor:    30 * time.Second,
	}
}

// Validate returns an error if the rules are invalid.
func (r *GamingRules) Validate() error {
	for _, p := range r.Processes {
		if _, err := path.Match(p, ""); err != nil || p == "" {
			return fmt.Errorf("game process %q: use the name of a program, with the wildcards * and ?", p)
		}
	}
	if r.GPULoad < 0 || r.GPULoad > 100 || r.GPUFor < 0 {
		return fmt.Errorf("GPU load of a game: %g%% for %s is out of range", r.GPULoad, r.GPUFor)
	}
	return nil
}

// game returns the first name that belongs to a game, or "" if there is none.
func (r *GamingRules) game(names []string) string {
	for _, name := range names {
		lower := strings.ToLower(name)
		for _, pattern := range r.Processes {
			pattern = strings.ToLower(pattern)
			if ok, _ := path.Match(pattern, lower); ok { // Validate has checked the pattern
				return name
			}
		}
	}
	return ""
}

// gaming detects games. The probe's lock guards it.
type gaming struct {
	rules     GamingRules
	processes *background[[]string]
	use       func(gpu int32) (held bool, grants int64)

	reading int64 // number of the GPU reading that was last evaluated
	gpus    map[int32]*gpuLoad
	seen    time.Time // time of the latest sign of a game
	sign    string
}

// gpuLoad tracks the load of a GPU that our attempts do not use.
type gpuLoad struct {
	grants int64
	since  time.Time // start of the current load; zero if there is none
}

func newGaming(rules GamingRules, r Readers, now func() time.Time, use func(int32) (bool, int64)) *gaming {
	return &gaming{
		rules: rules, use: use, gpus: map[int32]*gpuLoad{},
		processes: &background[[]string]{every: processInterval, limit: processLimit, now: now, read: func(ctx context.Context) ([]string, error) {
			return r.Processes(ctx)
		}},
	}
}

// detect returns the sign by which a user plays, or "". gpus are the figures of the GPU reading with the
// given number.
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

// busyGPU returns the index of a GPU that has been busy for long enough, or -1. The time of a GPU starts
// anew if an attempt holds it or has held it since the previous reading.
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

// labels returns the given labels in ascending order, with GamingLabel if a user plays.
func labels(given []string, playing bool) []string {
	all := slices.Clone(given)
	if playing {
		all = append(all, GamingLabel)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
