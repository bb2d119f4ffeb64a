package doctor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"

	"switchyard/activities/store"
)

// checkStore checks that the role can write to its store, and that the store is that of the fleet.
func (e *examination) checkStore(ctx context.Context) Finding {
	if e.Store == "" {
		return skipped("its place is unknown, because %v", errNoTemporal)
	}
	isFolder := !strings.Contains(e.Store, "://")
	if isFolder {
		if f, done := judgeFolder(e.Store, os.Geteuid()); done {
			return f
		}
	}
	if store.IsGateway(e.Store) && e.skew == nil {
		return skipped("%v", errNoGateway)
	}
	s, err := e.OpenStore(ctx)
	if err != nil {
		return judgeStore(e.Store, "", "", err)
	}
	defer s.Close()
	if e.Temporal != nil {
		s.ClaimFor(e.Temporal.Fleet)
	}
	if !store.IsGateway(e.Store) { // a gateway takes no values that belong to no attempt of the node
		if err := s.Probe(ctx, store.ProbeRun); err != nil {
			return judgeStore(e.Store, "", "", err)
		}
	}
	id, err := s.Identity(ctx)
	leader, _, _ := e.leader(ctx) // without Temporal, the store is compared later
	if leader.GetPrivateStore() {
		leader = nil
	}
	return judgeStore(e.Store, id, leader.GetStore(), err)
}

// judgeFolder returns a finding about the folder of a store if the check must not open it as the user with the given id.
func judgeFolder(dir string, user int) (f Finding, done bool) {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return judgeNewFolder(dir), true
	case err != nil:
		return failed("", "%v", err), true
	case !info.IsDir():
		return failed("name a folder with --store", "%s is not a folder", dir), true
	}
	if owner, known := ownerOf(info); known && user == 0 && owner != "root" {
		return warning("run `sudo -u "+owner+" switchyard doctor`", "%s belongs to %s, and root must not write to it", dir, owner), true
	}
	return Finding{}, false
}

// judgeNewFolder judges a folder that is yet to be created.
func judgeNewFolder(dir string) Finding {
	parent := existingParent(dir)
	if err := canWrite(parent); err != nil {
		return failed("create it for this user, or name another one", "%s does not exist and cannot be created: %v", dir, err)
	}
	return ok("%s does not exist yet; the first start creates it", dir)
}

func judgeStore(location, id, fleet string, err error) Finding {
	switch {
	case errors.Is(err, store.ErrForeign):
		return failed("", "%v", err)
	case errors.Is(err, fs.ErrPermission):
		return failed("let this user write to it, or run the role as its owner", "%s cannot be written: %v", location, err)
	case err != nil:
		return failed("see that it exists, has space, and lets this user write; or name another one with --store", "%s cannot be used: %v", location, err)
	case fleet != "" && fleet != id:
		return failed("name the store of the other gateways with --store, or leave --store out on a worker", "%s is not the store of the fleet, which the leading gateway uses", location)
	case fleet == "":
		return ok("%s can be written; no gateway runs with which to compare it", location)
	}
	return ok("%s can be used, and is that of the fleet", location)
}
