package shell

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchyard/activities/executor/shell/cgroup"
	"switchyard/activities/executor/shell/procfs"
)

// portable is the mechanism of tests without an engine. It works for every user.
const portable = EnvMarker

// leftOf finds the processes with the marker of an attempt, without using the
// code under test.
func leftOf(t *testing.T, id string) []string {
	t.Helper()
	var left []string
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range environs {
		text, err := os.ReadFile(path)
		if err == nil && bytes.Contains(text, []byte("SWITCHYARD_CLAIM="+id+"\x00")) {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
			left = append(left, fmt.Sprintf("%s %q", filepath.Dir(path), line))
		}
	}
	return left
}

// leftovers returns an error if the tests have left anything behind.
func leftovers() error {
	// This process adopts those of killed helpers, and they may have died after the last executor was closed.
	procfs.Orphans.Open().Close()
	all, err := procfs.List()
	for _, p := range all {
		if p.Parent == os.Getpid() {
			err = errors.Join(err, fmt.Errorf("process left: %+v", p))
		}
	}
	bases := newBounds(groupFactory{}).bases
	if base, e := cgroup.Own(); e == nil {
		bases["2"] = base
	}
	for _, base := range bases {
		dirs, _ := filepath.Glob(filepath.Join(base, fmt.Sprintf("%s%d-*", cgroup.ParentPrefix, os.Getpid())))
		if len(dirs) > 0 {
			err = errors.Join(err, fmt.Errorf("cgroups left: %v", dirs))
		}
	}
	return err
}

// dialArgument makes this program, run as a task, dial the addresses that follow.
const dialArgument = "shell-test-dial"

// dialIfAsked dials each address and prints which listeners answer. "self" stands for a listener of
// its own.
func dialIfAsked() {
	if len(os.Args) < 2 || os.Args[1] != dialArgument {
		return
	}
	own, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println("no listener:", err)
		os.Exit(1)
	}
	for _, address := range os.Args[2:] {
		network, address, _ := strings.Cut(address, "/")
		if address == "self" {
			address = own.Addr().String()
		}
		conn, err := net.Dial(network, address)
		if err == nil {
			conn.Close()
			fmt.Println(network, "answers")
		} else {
			fmt.Println(network, "is out of reach")
		}
	}
	os.Exit(0)
}
