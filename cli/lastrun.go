package cli

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	v1 "switchyard/proto/switchyard/v1"
)

// lastRun is what people type for the run that was started last.
const lastRun = "last"

// lastRunFile is where the run is kept that this user has started last from this
// machine on a gateway; "" where the user has no folder for such things.
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

// noteRun remembers the run that was started last. Where that cannot be kept,
// "last" is refused later.
func (s *system) noteRun(gateway, id string) {
	path := s.lastRunFile(gateway)
	if path == "" || os.MkdirAll(filepath.Dir(path), 0o700) != nil {
		return
	}
	// The whole id or none, also when two commands write at once.
	fresh, err := os.CreateTemp(filepath.Dir(path), ".fresh-")
	if err != nil {
		return
	}
	_, err = fresh.WriteString(id)
	if closed := fresh.Close(); err != nil || closed != nil || os.Rename(fresh.Name(), path) != nil {
		_ = os.Remove(fresh.Name())
	}
}

// ownRun is the run that a command is to change: what was typed, and for "last"
// the one that this user has started last from this machine, so that nobody else's
// is met.
func (s *system) ownRun(gateway, typed string) (string, error) {
	if typed != lastRun {
		return typed, nil
	}
	id, err := os.ReadFile(s.lastRunFile(gateway))
	if err != nil || len(id) == 0 {
		return "", &failure{
			code: exitUsage, err: fmt.Errorf("you have started no run from this machine on the gateway at %s, and \"last\" could be somebody else's", gateway),
			hint: "name the run; `switchyard runs list` lists them",
		}
	}
	s.sayWhich(typed, string(id))
	return string(id), nil
}

// sayWhich tells which run is meant by "last" where the output does not.
func (s *system) sayWhich(typed, id string) {
	if typed == lastRun {
		fmt.Fprintf(s.screen, "the last run is %s\n", id)
	}
}

// shownRun is the run that a command is to show whose output does not name it.
func (s *system) shownRun(ctx context.Context, a *api, typed string) (string, error) {
	if typed != lastRun {
		return typed, nil
	}
	page, err := call(ctx, a, a.calls.GetRun, &v1.GetRunRequest{Id: typed, PageSize: 1, Brief: true})
	if err != nil {
		return "", err
	}
	s.sayWhich(typed, page.GetRun().GetId())
	return page.GetRun().GetId(), nil
}
