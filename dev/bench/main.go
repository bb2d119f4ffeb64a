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

// durable makes the embedded Temporal server keep its data in a file.
var durable bool

// shape is a kind of work. Its measure function prints the rows whose name contains a text.
type shape struct {
	name    string
	measure func(ctx context.Context, rounds int, part string) error
}

func shapes() []shape {
	return []shape{
		{"chain", measurePairs(chainPairs())}, {"fan-out", measurePairs(fanOutPairs())}, {"batch", measurePairs(batchPairs())},
		{"logs", measurePairs(logPairs())}, {"placement", benchPlacement}, {"sessions", benchSessions}, {"agents", benchAgents},
		{"notifications", benchNotifications}, {"files", benchFiles}, {"k8s", benchK8s},
	}
}

func main() {
	shell.ServeIfAsked()
	rounds := flag.Int("rounds", 3, "how often each row is measured; the medians are shown")
	store := flag.String("store", "memory", "where Temporal keeps its data: memory or file")
	flag.Parse()
	durable = *store == "file"
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := bench(ctx, *rounds, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(ctx context.Context, rounds int, wanted []string) error {
	all := shapes()
	if len(wanted) == 0 {
		for _, s := range all[:len(all)-1] {
			wanted = append(wanted, s.name)
		}
	}
	fmt.Printf("%s, %d cores, %s/%s, medians of %d rounds\n", runtime.Version(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, rounds)
	for _, w := range wanted {
		name, part, _ := strings.Cut(w, ":")
		i := slices.IndexFunc(all, func(s shape) bool { return s.name == name })
		if i < 0 {
			return fmt.Errorf("no shape is called %q", name)
		}
		fmt.Println()
		if err := all[i].measure(ctx, rounds, part); err != nil {
			return fmt.Errorf("%s: %w", w, err)
		}
	}
	return nil
}

// measurement returns how long a workload takes on a cluster.
type measurement func(context.Context, *cluster) (time.Duration, error)

// pair is a workload to measure with Switchyard and with something else. Both are divided by per before they are printed.
type pair struct {
	name         string
	per          int
	unit         string
	ours, theirs measurement
}

// measurePairs returns a function that prints a row for each pair whose name contains a text. The two sides alternate.
func measurePairs(pairs []pair) func(ctx context.Context, rounds int, part string) error {
	return func(ctx context.Context, rounds int, part string) error {
		y, err := openCluster(ctx)
		if err != nil {
			return err
		}
		defer y.close()
		fmt.Println("| shape | Switchyard | on the right | ratio |\n|---|--:|--:|--:|")
		for _, p := range pairs {
			if !strings.Contains(p.name, part) {
				continue
			}
			var ours, theirs []time.Duration
			for round := range rounds + 1 {
				a, err := p.ours(ctx, y)
				if err != nil {
					return fmt.Errorf("%s: %w", p.name, err)
				}
				b, err := p.theirs(ctx, y)
				if err != nil {
					return fmt.Errorf("%s, on the right: %w", p.name, err)
				}
				if round > 0 { // the first round warms the caches
					ours, theirs = append(ours, a), append(theirs, b)
				}
			}
			a, b := median(ours)/time.Duration(p.per), median(theirs)/time.Duration(p.per)
			fmt.Printf("| %s | %s%s | %s%s | %.2f |\n", p.name, rounded(a), p.unit, rounded(b), p.unit, a.Seconds()/b.Seconds())
		}
		return nil
	}
}

// median sorts durations and returns the one in the middle.
func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

func rounded(d time.Duration) string { return d.Round(10 * time.Microsecond).String() }

func inMs(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1000) }
