package runcommands

import (
	"log/slog"
	"time"

	"go.temporal.io/sdk/client"

	"switchyard/activities/signing"
	"switchyard/activities/store"
	"switchyard/gateway/runindex"
	"switchyard/gateway/runupdate"
	"switchyard/gateway/runview"
)

// Config holds what the handlers share.
type Config struct {
	Client  client.Client
	Index   *runindex.Index
	Reader  *runview.Reader
	Store   *store.Store
	Updater *runupdate.Updater
	// Signer signs the decisions of callers.
	Signer *signing.Signer
	// FourEyes refuses decisions about tasks by who submitted their run.
	FourEyes bool
	Now      func() time.Time
	Log      *slog.Logger
}

// Commands serves the calls that steer open runs and their tasks. It is safe for concurrent use.
type Commands struct {
	updates
	decisions
	cancellation
}

// New returns the handlers.
func New(c Config) Commands {
	force := forcedCancel{client: c.Client, reader: c.Reader, store: c.Store, updater: c.Updater, log: c.Log}
	return Commands{
		updates:      updates{index: c.Index, updater: c.Updater},
		decisions:    decisions{index: c.Index, reader: c.Reader, updater: c.Updater, signer: c.Signer, now: c.Now, fourEyes: c.FourEyes},
		cancellation: cancellation{client: c.Client, index: c.Index, updater: c.Updater, force: force},
	}
}
