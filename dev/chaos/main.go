package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"switchyard/dev/chaos/drill"
)

func main() {
	drill.ServeIfAsked()
	var s settings
	flag.IntVar(&s.times, "times", 1, "how often each scenario is run")
	flag.StringVar(&s.scale, "scale", "full", "length of the timeouts: full or fast")
	flag.DurationVar(&s.soak, "soak", 0, "instead of scenarios, run random runs under random faults for this long")
	flag.Uint64Var(&s.seed, "seed", 0, "of the soak's random generator; 0 uses a new one each time")
	flag.StringVar(&s.binary, "binary", "", "program under test (default: built from this folder's module)")
	flag.StringVar(&s.dir, "dir", "", "existing folder for the folders of clusters (default: a temporary one)")
	flag.BoolVar(&s.keep, "keep", false, "also keep the folders of scenarios that passed")
	list := flag.Bool("list", false, "list the scenarios")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: go run ./dev/chaos [flags] [SCENARIO...]")
		flag.PrintDefaults()
	}
	flag.Parse()
	s.only = flag.Args()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go stopAfterGoRun(stop)
	err := error(nil)
	if *list {
		for _, scenario := range drill.Scenarios() {
			fmt.Printf("%-16s %s\n", scenario.Name, scenario.Says)
		}
	} else {
		err = s.chaos(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

// stopAfterGoRun calls stop when the `go run` that started this program has ended, which passes no SIGTERM on.
func stopAfterGoRun(stop func()) {
	parent := os.Getppid()
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", parent))
	if err != nil || string(name) != "go\n" {
		return
	}
	for os.Getppid() == parent {
		time.Sleep(time.Second)
	}
	stop()
}

// settings holds the flags.
type settings struct {
	times         int
	scale, binary string
	dir           string
	soak          time.Duration
	seed          uint64
	only          []string
	keep          bool
}

func (s settings) chaos(ctx context.Context) error {
	scale, err := scaleNamed(s.scale)
	if err != nil {
		return err
	}
	scenarios, err := selected(s.only)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(s.dir, "switchyard-chaos-")
	if err != nil {
		return err
	}
	if s.binary == "" {
		s.binary = filepath.Join(dir, "switchyard")
		build := exec.CommandContext(ctx, "go", "build", "-o", s.binary, "switchyard")
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("build: %w", err)
		}
	}
	if s.soak > 0 {
		soak := drill.Soak{Length: s.soak, Seed: s.seed}
		return s.once(dir, "soak", func(dir string) error {
			return soak.Run(ctx, drill.Options{Binary: s.binary, Dir: dir, Scale: scale, Report: os.Stdout})
		})
	}
	var errs []error
	for _, scenario := range scenarios {
		for i := range s.times {
			if ctx.Err() != nil {
				return errors.Join(append(errs, context.Cause(ctx))...)
			}
			errs = append(errs, s.once(dir, fmt.Sprintf("%s-%d", scenario.Name, i+1), func(dir string) error {
				return scenario.Run(ctx, drill.Options{Binary: s.binary, Dir: dir, Scale: scale, Report: indent{os.Stdout}})
			}))
		}
	}
	return errors.Join(errs...)
}

// once calls f with a folder of its own and prints the result.
func (s settings) once(parent, name string, f func(dir string) error) error {
	dir := filepath.Join(parent, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	began := time.Now()
	if err := f(dir); err != nil {
		fmt.Printf("FAIL %s (%.1f s), see %s\n     %s\n", name, time.Since(began).Seconds(), dir, strings.ReplaceAll(err.Error(), "\n", "\n     "))
		return fmt.Errorf("%s failed", name)
	}
	fmt.Printf("ok   %s (%.1f s)\n", name, time.Since(began).Seconds())
	if s.keep {
		return nil
	}
	return os.RemoveAll(dir)
}

// indent is a writer that indents the report of a scenario below its line.
type indent struct{ w io.Writer }

func (i indent) Write(line []byte) (int, error) {
	if _, err := fmt.Fprintf(i.w, "     %s", line); err != nil {
		return 0, err
	}
	return len(line), nil
}

func scaleNamed(name string) (drill.Scale, error) {
	for _, s := range []drill.Scale{drill.Full, drill.Fast} {
		if s.Name == name {
			return s, nil
		}
	}
	return drill.Scale{}, fmt.Errorf("-scale %q: use full or fast", name)
}

// selected returns the scenarios of those names, or all of them.
func selected(names []string) ([]drill.Scenario, error) {
	if len(names) == 0 {
		return drill.Scenarios(), nil
	}
	var found []drill.Scenario
	for _, name := range names {
		s, err := drill.ScenarioNamed(name)
		if err != nil {
			return nil, err
		}
		found = append(found, s)
	}
	return found, nil
}
