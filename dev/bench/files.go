package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"switchyard/dev/processes"
	"switchyard/workers/embedded"
	"switchyard/workflows/visibility"
)

// fileBench holds a gateway and two nodes with a cache each.
type fileBench struct {
	// binary is the program of this tree, and dir the folder for everything else.
	binary, dir    string
	temporal       *embedded.Server
	gateway, a, b  *processes.Process
	idleA, idleOfB int // memory before the first file, in MiB
	idleGateway    int
}

// fileShapes are the trees that travel.
var fileShapes = []struct {
	name string
	make func(dir string) error
}{
	{"a file of 1 GiB", func(dir string) error { return writeNoise(filepath.Join(dir, "file"), 1<<30) }},
	{"20,000 files of 4 KiB", func(dir string) error {
		for i := range 20_000 {
			file := filepath.Join(dir, strconv.Itoa(i%200), strconv.Itoa(i))
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				return err
			}
			if err := writeNoise(file, 4<<10); err != nil {
				return err
			}
		}
		return nil
	}},
}

// writeNoise writes a file that no compression makes smaller.
func writeNoise(name string, size int) error {
	var seed [32]byte
	for i := range seed {
		seed[i] = byte(rand.Uint32())
	}
	source, f := rand.NewChaCha8(seed), (*os.File)(nil)
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	block := make([]byte, min(size, 1<<20))
	for written := 0; written < size && err == nil; written += len(block) {
		_, _ = source.Read(block)
		_, err = f.Write(block)
	}
	return errors.Join(err, f.Close())
}

// benchFiles compares artifacts that travel from a node through a gateway to another node, once cold and once from the cache of that
// node, with rsync and cp on this machine. Each round has new contents.
func benchFiles(ctx context.Context, rounds int, part string) (err error) {
	y := &fileBench{}
	defer func() { err = errors.Join(err, y.close()) }()
	if err := y.open(ctx); err != nil {
		return err
	}
	fmt.Println("| files | node to node | again | rsync -a | cp -a | node to node / rsync | again / rsync |\n|---|--:|--:|--:|--:|--:|--:|")
	for _, shape := range fileShapes {
		if !strings.Contains(shape.name, part) {
			continue
		}
		var cold, again, synced, copied []time.Duration
		for range rounds {
			times, err := y.round(ctx, shape.make)
			if err != nil {
				return fmt.Errorf("%s: %w", shape.name, err)
			}
			cold, again, synced, copied = append(cold, times[0]), append(again, times[1]), append(synced, times[2]), append(copied, times[3])
		}
		c, n, r, p := median(cold), median(again), median(synced), median(copied)
		fmt.Printf("| %s | %s | %s | %s | %s | %.2f | %.2f |\n", shape.name, rounded(c), rounded(n), rounded(r), rounded(p), c.Seconds()/r.Seconds(), n.Seconds()/r.Seconds())
	}
	for _, p := range []struct {
		name string
		of   *processes.Process
		idle int
	}{{"gateway", y.gateway, y.idleGateway}, {"sending node", y.a, y.idleA}, {"receiving node", y.b, y.idleOfB}} {
		peak, err := memory(p.of, "VmHWM")
		if err != nil {
			return err
		}
		fmt.Printf("memory of the %s: %d MiB when idle, %d MiB at its peak\n", p.name, p.idle, peak)
	}
	return nil
}

// open starts the processes.
func (y *fileBench) open(ctx context.Context) (err error) {
	if y.binary, y.dir, err = buildBinary(ctx); err != nil {
		return err
	}
	if y.temporal, err = embedded.Start(ctx, embedded.Options{Logger: slog.New(slog.DiscardHandler), SearchAttributes: visibility.Types()}); err != nil {
		return err
	}
	env := []string{"TEMPORAL_ADDRESS=" + y.temporal.Address()}
	y.gateway, err = startProcess(ctx, y.dir, "SSH", env, y.binary, "gateway", "--address", "127.0.0.1:0", "--ssh-address", "127.0.0.1:0",
		"--store", filepath.Join(y.dir, "store"), "--log-level", "error")
	if err != nil {
		return err
	}
	worker := func(name string) (*processes.Process, error) {
		scratch := filepath.Join(y.dir, name)
		if err := os.Mkdir(scratch, 0o700); err != nil {
			return nil, err
		}
		return startProcess(ctx, y.dir, "Node", env, y.binary, "worker", "--name", name, "--gateway", said(y.gateway, "Gateway"), "--scratch-dir", scratch,
			"--metrics-address", "none", "--drain-timeout", "1s", "--log-level", "error")
	}
	if y.a, err = worker("a"); err != nil {
		return err
	}
	if y.b, err = worker("b"); err != nil {
		return err
	}
	if err := processes.Pause(ctx, time.Second); err != nil {
		return err
	}
	for idle, of := range map[*int]*processes.Process{&y.idleGateway: y.gateway, &y.idleA: y.a, &y.idleOfB: y.b} {
		if *idle, err = memory(of, "VmRSS"); err != nil {
			return err
		}
	}
	return nil
}

// round measures one tree: node to node, again on the second node, rsync, and cp.
func (y *fileBench) round(ctx context.Context, make func(dir string) error) (times [4]time.Duration, err error) {
	dir, err := os.MkdirTemp(y.dir, "round-")
	if err != nil {
		return times, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	source := filepath.Join(dir, "source")
	if err := os.Mkdir(source, 0o755); err != nil {
		return times, err
	}
	if err := make(source); err != nil {
		return times, err
	}
	file := filepath.Join(dir, "files.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, `
name: files
tasks:
  make:
    type: shell
    constraints: { targetNode: a }
    spec: { command: "cp -a %[1]s/source out && date +%%s.%%N >%[1]s/made" }
    artifacts: { out: [{ name: files, path: out }] }
  use:
    type: shell
    dependsOn: [make]
    constraints: { targetNode: b }
    spec: { command: "date +%%s.%%N >%[1]s/used" }
    artifacts: { in: [{ from: make.files, path: in }] }
  again:
    type: shell
    dependsOn: [use]
    constraints: { targetNode: b }
    spec: { command: "date +%%s.%%N >%[1]s/again && diff -r in %[1]s/source" }
    artifacts: { in: [{ from: make.files, path: in }] }
`, dir), 0o600); err != nil {
		return times, err
	}
	submit := exec.CommandContext(ctx, y.binary, "submit", file, "--watch", "--gateway", said(y.gateway, "Gateway"))
	if text, err := submit.CombinedOutput(); err != nil {
		return times, fmt.Errorf("%w: %s", err, text)
	}
	var at [3]float64
	for i, name := range []string{"made", "used", "again"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return times, err
		}
		if at[i], err = strconv.ParseFloat(strings.TrimSpace(string(text)), 64); err != nil {
			return times, err
		}
	}
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	times[0], times[1] = seconds(at[1]-at[0]), seconds(at[2]-at[1])
	for i, copying := range [][]string{{"rsync", "-a", source + "/", filepath.Join(dir, "synced") + "/"}, {"cp", "-a", source, filepath.Join(dir, "copied")}} {
		began := time.Now()
		if text, err := exec.CommandContext(ctx, copying[0], copying[1:]...).CombinedOutput(); err != nil {
			return times, fmt.Errorf("%s: %w: %s", copying[0], err, text)
		}
		times[2+i] = time.Since(began)
	}
	return times, nil
}

// close ends the processes and removes their files.
func (y *fileBench) close() error {
	for _, p := range []*processes.Process{y.a, y.b, y.gateway} {
		if p != nil {
			end(p)
		}
	}
	if y.temporal != nil {
		y.temporal.Stop()
	}
	return os.RemoveAll(y.dir)
}
