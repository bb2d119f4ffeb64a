package main

import (
	"strings"
	"testing"
)

// TestReportNamesFlakyAndSlowTests reads a run with a test that fails always, one that fails once, and one that passes.
func TestReportNamesFlakyAndSlowTests(t *testing.T) {
	const events = `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:1: first\n"}
{"Action":"fail","Package":"p","Test":"TestA","Elapsed":1.5}
{"Action":"output","Package":"p","Test":"TestB","Output":"always\n"}
{"Action":"fail","Package":"p","Test":"TestB","Elapsed":0.5}
{"Action":"run","Package":"p","Test":"TestC/sub"}
{"Action":"pass","Package":"p","Test":"TestC/sub","Elapsed":9}
{"Action":"pass","Package":"p","Test":"TestC","Elapsed":9}
{"Action":"fail","Package":"p","Elapsed":10}
not JSON
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"second\n"}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":0.1}
{"Action":"fail","Package":"p","Test":"TestB","Elapsed":0.5}`
	r := report{results: map[string]*result{}}
	if err := r.read(strings.NewReader(events)); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	r.print(&got, 2)
	const want = `FLAKY p.TestA failed first, and passed when it ran again:
    a_test.go:1: first

the slowest tests:
    9.0s p.TestC
    1.5s p.TestA
`
	if got.String() != want {
		t.Errorf("the report is\n%s\nwant\n%s", got.String(), want)
	}
}

// TestReportNamesPackagesThatFailOutsideTheirTests reads a run in which goroutines of one package remain, and then none of its
// tests run again, beside a package with a failed test.
func TestReportNamesPackagesThatFailOutsideTheirTests(t *testing.T) {
	const events = `{"Action":"run","Package":"leaky","Test":"TestA"}
{"Action":"pass","Package":"leaky","Test":"TestA","Elapsed":2}
{"Action":"output","Package":"leaky","Output":"goroutines remain\n"}
{"Action":"fail","Package":"leaky","Elapsed":2}
{"Action":"run","Package":"other","Test":"TestB"}
{"Action":"fail","Package":"other","Test":"TestB","Elapsed":1}
{"Action":"fail","Package":"other","Elapsed":1}
{"Action":"output","Package":"leaky","Output":"no tests to run\n"}
{"Action":"pass","Package":"leaky"}
{"Action":"run","Package":"other","Test":"TestB"}
{"Action":"pass","Package":"other","Test":"TestB","Elapsed":1}
{"Action":"pass","Package":"other"}`
	r := report{results: map[string]*result{}}
	if err := r.read(strings.NewReader(events)); err != nil {
		t.Fatal(err)
	}
	if failed := r.failedOutsideTests(); len(failed) != 1 || failed[0].pkg != "leaky" {
		t.Errorf("%d packages failed outside their tests, want only leaky", len(failed))
	}
	var got strings.Builder
	r.print(&got, 0)
	if want := "FAILED leaky, although none of its tests did:\ngoroutines remain\n\n"; !strings.Contains(got.String(), want) {
		t.Errorf("the report is\n%s\nwithout\n%s", got.String(), want)
	}
}
