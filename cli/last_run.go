package cli

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"switchyard/cli/client"
	"switchyard/cli/exit"
	v1 "switchyard/proto/switchyard/v1"
)

// lastRun is the word that stands for the newest run.
const lastRun = "last"

// lastRunFile returns the file that holds the last run that this user started from this machine on a gateway, or "" if
// the user has no folder for state.
func (s *system) lastRunFile(gateway string) string {
	dir := s.getenv("XDG_STATE_HOME")
	if dir == "" && s.getenv("HOME") != "" {
		dir = filepath.Join(s.getenv("HOME"), ".local", "state")
	}
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "switchyard", "last-run", url.PathEscape(gateway))
}

// rememberRun stores the ID of the run that was started last. If that fails, "last" is refused later.
func (s *system) rememberRun(gateway, id string) {
	path := s.lastRunFile(gateway)
	if path == "" || os.MkdirAll(filepath.Dir(path), 0o700) != nil {
		return
	}
	// The rename keeps the file whole even if two commands write at once.
	fresh, err := os.CreateTemp(filepath.Dir(path), ".fresh-")
	if err != nil {
		return
	}
	_, err = fresh.WriteString(id)
	if closed := fresh.Close(); err != nil || closed != nil || os.Rename(fresh.Name(), path) != nil {
		_ = os.Remove(fresh.Name())
	}
}

// resolveOwnRun returns the run that a command changes. For "last" it returns the last run that this user started from
// this machine, so that the command never changes another user's run.
func (s *system) resolveOwnRun(gateway, typed string) (string, error) {
	if typed != lastRun {
		return typed, nil
	}
	id, err := os.ReadFile(s.lastRunFile(gateway))
	if err != nil || len(id) == 0 {
		return "", &exit.Error{
			Code: exit.CodeUsage, Err: fmt.Errorf("you have not started a run from this machine on the gateway at %s, and \"last\" could be another user's run", gateway),
			Hint: "name the run; `switchyard runs list` lists them",
		}
	}
	s.printResolved(typed, string(id))
	return string(id), nil
}

// printResolved prints the run that "last" stands for, for output that does not name it.
func (s *system) printResolved(typed, id string) {
	if typed == lastRun {
		fmt.Fprintf(s.screen, "the last run is %s\n", id)
	}
}

// resolveRun returns the run that a command shows, for output that does not name it.
func (s *system) resolveRun(ctx context.Context, a *client.Client, typed string) (string, error) {
	if typed != lastRun {
		return typed, nil
	}
	page, err := client.Call(ctx, a, a.Runs.GetRun, &v1.GetRunRequest{Id: typed, PageSize: 1, Brief: true})
	if err != nil {
		return "", err
	}
	s.printResolved(typed, page.GetRun().GetId())
	return page.GetRun().GetId(), nil
}
