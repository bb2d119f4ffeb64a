package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

func main() {
	slowest := flag.Int("slowest", 20, "number of the slowest tests to print")
	flag.Parse()
	r := report{results: map[string]*result{}}
	for _, path := range flag.Args() {
		if err := r.readFile(path); err != nil {
			fmt.Fprintln(os.Stderr, "testreport:", err)
			os.Exit(1)
		}
	}
	r.print(os.Stdout, *slowest)
	if len(r.failedOutsideTests()) > 0 {
		os.Exit(1)
	}
}

// event is an event of `go test -json`, as `go doc test2json` describes it.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64 // in seconds
}

// result is what is known of one test or, with an empty name, of one package.
type result struct {
	pkg, test string
	output    strings.Builder // of the run in progress, or of the failure
	failed    bool            // in some run
	passed    bool            // in the last run
	elapsed   time.Duration   // of the longest run
}

// report collects the results of tests by package and name.
type report struct{ results map[string]*result }

func (r report) readFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return r.read(file)
}

// read adds the events of a stream. Lines that are no events are output of the tool itself, and are left out.
func (r report) read(from io.Reader) error {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		if json.Unmarshal(line, &e) == nil {
			r.add(e)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r report) add(e event) {
	key := e.Package + "." + e.Test
	got := r.results[key]
	if got == nil {
		got = &result{pkg: e.Package, test: e.Test}
		r.results[key] = got
	}
	switch e.Action {
	case "run":
		if !got.failed {
			got.output.Reset()
		}
	case "output":
		if !got.failed {
			got.output.WriteString(e.Output)
		}
	case "fail", "pass", "skip":
		got.failed = got.failed || e.Action == "fail"
		got.passed = e.Action == "pass"
		got.elapsed = max(got.elapsed, time.Duration(e.Elapsed*float64(time.Second)))
	}
}

// isFlaky reports whether a test failed and passed when it ran again.
func (r *result) isFlaky() bool { return r.test != "" && r.failed && r.passed }

// failedOutsideTests returns the packages that failed although none of their tests did.
func (r report) failedOutsideTests() []*result {
	withFailedTest := map[string]bool{}
	for _, got := range r.results {
		withFailedTest[got.pkg] = withFailedTest[got.pkg] || got.test != "" && got.failed
	}
	var packages []*result
	for _, got := range r.results {
		if got.test == "" && got.failed && !withFailedTest[got.pkg] {
			packages = append(packages, got)
		}
	}
	slices.SortFunc(packages, func(a, b *result) int { return cmp.Compare(a.pkg, b.pkg) })
	return packages
}

// print writes the flaky tests, the packages that failed outside their tests, and the slowest of the tests that are no subtests.
func (r report) print(to io.Writer, slowest int) {
	var tests []*result
	for _, got := range r.results {
		if got.test != "" {
			tests = append(tests, got)
		}
	}
	slices.SortFunc(tests, func(a, b *result) int {
		return cmp.Or(cmp.Compare(b.elapsed, a.elapsed), cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.test, b.test))
	})
	for _, t := range tests {
		if t.isFlaky() {
			fmt.Fprintf(to, "FLAKY %s.%s failed first, and passed when it ran again:\n%s\n", t.pkg, t.test, t.output.String())
		}
	}
	for _, p := range r.failedOutsideTests() {
		fmt.Fprintf(to, "FAILED %s, although none of its tests did:\n%s\n", p.pkg, p.output.String())
	}
	fmt.Fprintln(to, "the slowest tests:")
	for _, t := range tests {
		if strings.Contains(t.test, "/") {
			continue
		}
		if slowest--; slowest < 0 {
			return
		}
		fmt.Fprintf(to, "%7.1fs %s.%s\n", t.elapsed.Seconds(), t.pkg, t.test)
	}
}
