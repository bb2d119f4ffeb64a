package main

import (
	"fmt"
	"os"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "changes:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "check":
		if _, err := readFragments(fragmentFolder); err != nil {
			return err
		}
		commits, err := commitsSinceRelease(".")
		if err != nil {
			return err
		}
		return checkCommits(commits)
	case len(args) == 2 && args[0] == "release":
		return release(".", args[1], time.Now().UTC())
	default:
		return fmt.Errorf("usage: changes check, or changes release VERSION (such as 0.1.0), in the root of the repository")
	}
}
