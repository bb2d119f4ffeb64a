package workertest

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"switchyard/activities/hostlist"
	"switchyard/activities/notifications"
	"switchyard/activities/secrets/vault"
	"switchyard/activities/store"
	"switchyard/dev/temporaltest"
	"switchyard/workers"
	"switchyard/workflows/lock"
	"switchyard/workflows/names"
)

// Cluster is a Temporal server with a control process and a store. Nodes adds the nodes of a test to it. A cluster that
// stops replays the history of every workflow on its server, so that each test also checks determinism.
type Cluster struct {
	// Dir is the folder of the cluster. The store is in its folder "store".
	Dir    string
	Server *temporaltest.Server
	Conn   *workers.Connection
	Store  *store.Store
	// Config is the configuration of Control, for further control processes.
	Config workers.ControlConfig
	// Targets and Vault hold the targets of notifications, which may be servers of this machine, and their secrets.
	Targets *notifications.Targets
	Vault   *vault.Vault
	// Control is stopped with the cluster. A test that replaces it stops the earlier one itself.
	Control *workers.Control
	Logger  *slog.Logger
	stops   sync.Once
	sets    atomic.Int32 // numbers the sets of nodes
}

// startCluster starts a cluster whose store is below a folder.
func startCluster(dir string, cfg workers.ControlConfig) (_ *Cluster, err error) {
	y, err := startBare(dir)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), Limit)
	defer cancel()
	cfg.Client, cfg.Store, cfg.Logger = y.Conn, y.Store, y.Logger
	y.Targets, y.Vault = notifications.NewTargets(y.Store, time.Now), vault.New(y.Store, filepath.Join(dir, "secrets-key"), time.Now)
	cfg.Sender = notifications.NewSender(y.Targets, y.Vault, hostlist.List{"127.0.0.1"}, time.Now)
	y.Config = cfg
	if y.Control, err = workers.StartControl(ctx, cfg); err != nil {
		return nil, errors.Join(err, y.stop())
	}
	return y, nil
}

// startBare starts a cluster without a control process.
func startBare(dir string) (_ *Cluster, err error) {
	y := &Cluster{Dir: dir, Logger: slog.New(slog.DiscardHandler)}
	defer func() {
		if err != nil {
			err = errors.Join(err, y.stop())
		}
	}()
	// The program of the first server may have to be built.
	if y.Server, err = temporaltest.Start(temporaltest.Options{}); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), Limit)
	defer cancel()
	if y.Conn, err = workers.Dial(ctx, workers.DialOptions{Address: y.Server.Address(), Identity: "test", Logger: y.Logger}); err != nil {
		return nil, err
	}
	y.Store, err = store.Open(ctx, filepath.Join(dir, "store"))
	return y, err
}

// stop replays the histories of the control process and stops the parts that have started. A second stop is a no-op.
func (y *Cluster) stop() (err error) {
	y.stops.Do(func() {
		if y.Control != nil {
			err = y.replayAll(context.Background()) // each call has a time-out
			y.Control.Stop()
			y.Config.Sender.Close()
		}
		if y.Conn != nil {
			y.Conn.Close()
		}
		if y.Store != nil {
			err = errors.Join(err, y.Store.Close())
		}
		if y.Server != nil {
			err = errors.Join(err, y.Server.Stop())
		}
	})
	return err
}

// AwaitLockEnd waits until the workflow of a lock has ended by itself.
func (y *Cluster) AwaitLockEnd(t *testing.T, lock string) {
	t.Helper()
	Eventually(t, "the lock ends", func() bool {
		d := Describe(t, y.Conn, names.LockWorkflowID(lock), "")
		status := d.GetWorkflowExecutionInfo().GetStatus()
		if status != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING && status != enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED {
			t.Fatalf("the lock is %s", status)
		}
		return status == enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
	})
}

// quickLocker checks holders and ends so quickly that tests need not wait, and continues as new often.
var quickLocker = lock.Locker{Idle: 100 * time.Millisecond, LookEvery: 100 * time.Millisecond, HistoryEvents: 150}
