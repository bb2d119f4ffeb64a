package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"switchyard/activities/executor/shell"
)

func main() {
	shell.ServeIfAsked()
	rounds := flag.Int("rounds", 3, "how often each pair is measured; the medians are shown")
	stores := flag.String("store", "both", "where Temporal keeps its data: memory, file or both")
	shape := flag.String("shape", "", "measure only the shapes whose name contains this")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := bench(ctx, *rounds, *stores, *shape); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(ctx context.Context, rounds int, stores, only string) error {
	fmt.Printf("%s, %d cores, %s/%s, medians of %d rounds\n\n", runtime.Version(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, rounds)
	if only == placementShape {
		return benchPlacement(rounds)
	}
	if only == layoutShape {
		benchLayout(rounds)
		return nil
	}
	if only, ok := strings.CutPrefix(only, gatewayShape); ok {
		return benchGateway(ctx, rounds, strings.TrimPrefix(only, ":"))
	}
	if only, ok := strings.CutPrefix(only, containerShape); ok {
		return benchContainers(ctx, rounds, strings.TrimPrefix(only, ":"))
	}
	if only, ok := strings.CutPrefix(only, agentShape); ok {
		return benchAgentTasks(ctx, rounds, strings.TrimPrefix(only, ":"))
	}
	if only, ok := strings.CutPrefix(only, k8sShape); ok {
		return benchK8s(ctx, rounds, strings.TrimPrefix(only, ":"))
	}
	if only, ok := strings.CutPrefix(only, sessionShape); ok {
		return benchSessions(ctx, rounds, strings.TrimPrefix(only, ":"))
	}
	if only, ok := strings.CutPrefix(only, scaleShapes); ok {
		return scale(ctx, strings.TrimPrefix(only, ":"))
	}
	if only, ok := strings.CutPrefix(only, limitShapes); ok {
		return tryLimits(ctx, strings.TrimPrefix(only, ":"))
	}
	fmt.Println("| store | shape | Switchyard | hand-written | ratio |")
	fmt.Println("|---|---|--:|--:|--:|")
	for _, kind := range []string{"memory", "file"} {
		if stores != "both" && stores != kind {
			continue
		}
		if err := benchStore(ctx, kind, rounds, only); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	if strings.Contains("peak memory", only) {
		for _, tasks := range []int{1, 1000} {
			if err := memory(ctx, tasks); err != nil {
				return fmt.Errorf("peak memory: %w", err)
			}
		}
	}
	if strings.Contains("idle worker", only) {
		if err := idle(ctx); err != nil {
			return fmt.Errorf("idle worker: %w", err)
		}
	}
	return nil
}

func benchStore(ctx context.Context, kind string, rounds int, only string) error {
	wanted := slices.DeleteFunc(shapes(), func(s shape) bool { return !strings.Contains(s.name, only) })
	return benchShapes(ctx, kind, rounds, wanted)
}

// benchShapes prints a row for each of the given shapes.
func benchShapes(ctx context.Context, kind string, rounds int, wanted []shape) error {
	y, err := openCluster(ctx, kind == "file")
	if err != nil {
		return err
	}
	defer y.close()
	for _, s := range wanted {
		var ours, theirs []time.Duration
		for round := range rounds + 1 {
			a, err := s.ours(ctx, y)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			b, err := s.theirs(ctx, y)
			if err != nil {
				return fmt.Errorf("%s, by hand: %w", s.name, err)
			}
			if round > 0 { // the first round warms the caches
				ours, theirs = append(ours, a), append(theirs, b)
			}
		}
		row(kind, s, median(ours), median(theirs))
	}
	return nil
}

func row(kind string, s shape, ours, theirs time.Duration) {
	per := func(d time.Duration) string {
		d /= time.Duration(s.per)
		return d.Round(10*time.Microsecond).String() + s.unit
	}
	fmt.Printf("| %s | %s | %s | %s | %.2f |\n", kind, s.name, per(ours), per(theirs), ours.Seconds()/theirs.Seconds())
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
