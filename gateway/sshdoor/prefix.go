package sshdoor

import (
	"context"
	"errors"

	"golang.org/x/crypto/ssh"
)

const (
	// minPrefix is how many characters of the id of a run a user name has at least.
	minPrefix = 2
	// maxStarting is how many runs are looked at that begin with the text of a user name.
	maxStarting = 32
)

// ofPrefix returns what a key that a task names opens of the runs that begin with what a user name says, or nil unless this is one
// run. The search ends before a refusal is sent, so that the time of a refusal does not depend on what exists.
func (d *Door) ofPrefix(ctx context.Context, user string, key ssh.PublicKey) (*grant, error) {
	search, cancel := context.WithTimeout(ctx, d.config.RefusalTime*2/3)
	defer cancel()
	for _, at := range placesOf(user) {
		if len(at.run) < minPrefix || !isRunID(at.run) {
			continue
		}
		g, err := d.onlyOfPrefix(search, at, key)
		if errors.Is(search.Err(), context.DeadlineExceeded) && ctx.Err() == nil {
			return nil, &refusal{"the runs that begin with this name could not be looked through in time"}
		}
		if g != nil || err != nil {
			return g, err
		}
	}
	return nil, nil
}

// onlyOfPrefix returns what a key opens of the runs that begin with a text, or nil unless this is one run.
func (d *Door) onlyOfPrefix(ctx context.Context, at place, key ssh.PublicKey) (*grant, error) {
	ids, err := d.config.Runs.Starting(ctx, at.run, maxStarting+1)
	if err != nil {
		return nil, unlessUnknown(err)
	}
	if len(ids) > maxStarting {
		return nil, &refusal{"too many runs begin with this name"}
	}
	var only *grant
	for _, id := range ids {
		g, err := d.ofTask(ctx, place{at.task, id}, key)
		switch {
		case err != nil:
			return nil, err
		case g != nil && only != nil:
			return nil, &refusal{"several runs that begin with this name are open to this key"}
		case g != nil:
			only = g
		}
	}
	return only, nil
}
