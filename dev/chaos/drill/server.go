package drill

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"switchyard/workers/embedded"
	"switchyard/workflows/names"
	"switchyard/workflows/visibility"
)

// Variables with the database file and the address of the Temporal server that this process should become.
const (
	serverVariable  = "CHAOS_SERVER_DB"
	addressVariable = "CHAOS_SERVER_ADDRESS"
)

// ServeIfAsked turns this process into a Temporal server, if it was started as one, so that the server can be killed
// separately. A program that opens clusters calls it first.
func ServeIfAsked() {
	db := os.Getenv(serverVariable)
	if db == "" {
		return
	}
	if err := serveTemporal(db); err != nil {
		fmt.Fprintln(os.Stderr, "temporal:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// ServerVariables returns the environment that turns a program that calls ServeIfAsked into a Temporal server on a
// database. The program prints "Temporal" and its address. An empty address means a free one.
func ServerVariables(db, address string) []string {
	return []string{serverVariable + "=" + db, addressVariable + "=" + address}
}

func serveTemporal(db string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	server, err := embedded.Start(ctx, embedded.Options{
		DBFile: db, Address: os.Getenv(addressVariable), Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		SearchAttributes: visibility.Types(),
	})
	if err != nil {
		return err
	}
	fmt.Println("Temporal", server.Address())
	<-ctx.Done()
	return server.Stop()
}

const serverName = "temporal"

// startServer starts a Temporal server that can be killed separately.
func (y *Cluster) startServer() error {
	address, err := freeAddress()
	if err != nil {
		return err
	}
	y.temporal = address
	return y.restartServer()
}

// restartServer starts the server again at its previous address and on its previous database.
func (y *Cluster) restartServer() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	env := append(y.env(), ServerVariables(y.database(), y.temporal)...)
	p, err := y.startProcess(serverName, env, self)
	if err != nil {
		return err
	}
	_, err = p.Field(y.ctx, "Temporal")
	return err
}

// database returns the path of the server's database.
func (y *Cluster) database() string { return filepath.Join(y.Dir, "temporal.db") }

// dial returns a Temporal client of the cluster's server.
func (y *Cluster) dial() (client.Client, error) {
	return client.DialContext(y.ctx, client.Options{HostPort: y.temporal, Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))})
}

// pendingActivities returns the activities of the newest execution of a run that have not ended.
func (y *Cluster) pendingActivities(c client.Client, id string) ([]*workflowpb.PendingActivityInfo, error) {
	desc, err := c.DescribeWorkflowExecution(y.ctx, id, "")
	return desc.GetPendingActivities(), err
}

// hasActivity reports whether the newest execution of a run has an activity of a type that has not ended.
func (y *Cluster) hasActivity(c client.Client, id, of string) (bool, error) {
	pending, err := y.pendingActivities(c, id)
	return slices.ContainsFunc(pending, func(p *workflowpb.PendingActivityInfo) bool { return p.GetActivityType().GetName() == of }), err
}

// heartbeatTimeouts returns the heartbeat time-outs of the attempts of a run that have not ended, by activity id.
func (y *Cluster) heartbeatTimeouts(c client.Client, id string) (map[string]time.Duration, error) {
	pending, err := y.pendingActivities(c, id)
	timeouts := map[string]time.Duration{}
	for _, p := range pending {
		if p.GetActivityType().GetName() == names.ExecuteActivity {
			timeouts[p.GetActivityId()] = p.GetActivityOptions().GetHeartbeatTimeout().AsDuration()
		}
	}
	return timeouts, err
}
