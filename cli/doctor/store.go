package doctor

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"switchyard/activities/store"
	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workers"
)

// storeView is what a check has seen of a store, without changing it.
type storeView struct {
	store.Inspection
	// err is the error of the inspection.
	err error
	// cluster is the ID of the cluster to which the store must belong, or "" if it is unknown.
	cluster string
	// leader is the leader of the fleet, or nil if none is known whose store the fleet shares.
	leader *historyv1.LeaderHeartbeat
	// isFolder is set for a folder. writeErr explains why this process cannot write to the folder, or cannot create it.
	isFolder bool
	writeErr error
	// otherOwner is the user who owns the folder if this process is that of root, which may write everywhere.
	otherOwner string
}

// checkStores checks the store of the role, or of each of its gateways that answer if these are its store.
func (e *examination) checkStores(ctx context.Context) []Finding {
	switch {
	case e.Store == "":
		return []Finding{skipped("its place is unknown, because %v", errNoTemporal)}
	case !store.IsGateway(e.Store):
		return []Finding{e.checkStore(ctx, e.Store, store.Options{})}
	case len(e.answering) == 0:
		return []Finding{skipped("%v", errNoGateway)}
	}
	var found []Finding
	for _, gateway := range e.answering {
		found = append(found, e.checkStore(ctx, gateway.Store.URL, store.Options{Gateways: gateway.Store}))
	}
	return found
}

// checkStore checks that the role can use the store at a location, and that it is that of the fleet.
func (e *examination) checkStore(ctx context.Context, location string, o store.Options) Finding {
	var view storeView
	view.Inspection, view.err = store.Inspect(ctx, location, o)
	if e.Temporal != nil {
		view.cluster = e.Temporal.Fleet
	}
	// Without Temporal, the store is compared later.
	if leader, _, _ := e.leader(ctx); leader.GetStore() != "" && !leader.GetPrivateStore() {
		view.leader = leader
	}
	if _, view.isFolder = store.FolderOf(location); view.isFolder {
		view.addFolder(os.Geteuid())
	}
	return judgeStore(view)
}

// addFolder adds whether the user with the given id can write to the folder. It leaves nothing behind.
func (v *storeView) addFolder(user int) {
	v.writeErr = CheckNewFolder(v.Location)
	if info, err := os.Stat(v.Location); err == nil && user == 0 {
		if owner, known := ownerOf(info); known && owner != "root" {
			v.otherOwner = owner
		}
	}
}

func judgeStore(v storeView) Finding {
	isAbsent := v.isFolder && errors.Is(v.err, fs.ErrNotExist)
	otherStore := func(remedy string) Finding {
		return failed(remedy, "%v", workers.OtherStoreError(v.Location, v.leader))
	}
	switch {
	case isAbsent && v.leader != nil:
		return otherStore("this folder does not exist: see that its name is spelled right, and that it is mounted")
	case isAbsent && v.writeErr != nil:
		return failed("create it for this user, or name another one with --store", "%s does not exist and cannot be created: %v", v.Location, v.writeErr)
	case isAbsent:
		return ok("%s does not exist yet; the first start creates it", v.Location)
	case errors.Is(v.err, fs.ErrPermission):
		return failed("let this user read and write it, or run the role as its owner", "%v", v.err)
	case v.err != nil:
		return failed("see that it exists and lets this user read it; or name another one with --store", "%v", v.err)
	}
	if v.Claim.Cluster != "" && v.cluster != "" {
		if err := v.Claim.CheckOwner(v.cluster, v.Location); err != nil {
			return failed("", "%v", err)
		}
	}
	switch {
	case v.LevelErr != nil:
		return failed("", "%v", v.LevelErr)
	case v.leader != nil && !v.IsStore && v.isFolder:
		return failed("is it mounted? Else name the store of the fleet with --store", "%s is not the store of the fleet that %s leads: it has no file %s", v.Location, v.leader.GetIdentity(), store.MarkerName)
	case v.leader != nil && v.leader.GetStore() != v.Identity:
		return otherStore("name the store of the other gateways with --store, or leave --store out on a worker")
	case v.writeErr != nil:
		return failed("let this user write to it, or run the role as its owner", "%s cannot be written: %v", v.Location, v.writeErr)
	case v.otherOwner != "":
		return warning("run `sudo -u "+v.otherOwner+" switchyard doctor`", "%s belongs to %s; whether that user can write to it is unknown to root", v.Location, v.otherOwner)
	case !v.IsStore && !v.IsEmpty:
		return warning("name an empty folder or bucket with --store, unless it is meant to hold both", "%s holds other files and is no store yet; the first start makes it one", v.Location)
	case !v.IsStore:
		return ok("%s is empty; the first start makes it a store", v.Location)
	}
	usable := "can be written"
	switch {
	case store.IsGateway(v.Location):
		usable = "can be used"
	case !v.isFolder:
		usable = "can be read (writing was not tried, because the doctor changes nothing)"
	}
	if v.leader == nil {
		return ok("%s %s; no gateway runs with which to compare it", v.Location, usable)
	}
	return ok("%s %s, and is that of the fleet", v.Location, usable)
}
