package gateway

import (
	"switchyard/activities/environments"
	"switchyard/activities/owners"
	"switchyard/activities/registry"
	"switchyard/activities/signing"
	"switchyard/gateway/definitions"
	"switchyard/gateway/explanation"
	"switchyard/gateway/runcommands"
	"switchyard/gateway/rundetails"
	"switchyard/gateway/runevents"
	"switchyard/gateway/runindex"
	"switchyard/gateway/runretry"
	"switchyard/gateway/runstreams"
	"switchyard/gateway/runupdate"
	"switchyard/gateway/runview"
	"switchyard/gateway/submission"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// runService implements RunService. Each of its parts has the calls of one noun.
type runService struct {
	*submission.Submitter
	rundetails.Details
	runstreams.Streams
	runcommands.Commands
	runretry.Retries
	explanation.Explanations
}

var _ switchyardv1connect.RunServiceHandler = runService{}

// shared is what the services share.
type shared struct {
	index     *runindex.Index
	reader    *runview.Reader
	pollers   *runview.Pollers
	events    *runevents.Reader
	submitter *submission.Submitter
	signer    *signing.Signer
	stopping  chan struct{} // closed when the gateway shuts down
}

// newShared returns what the services of a gateway share. submitter finds stored workflows in stored.
func newShared(config Config, stored definitions.Library) shared {
	reader := runview.NewReader(config.Client, config.Namespace, config.Store, config.Logger)
	index := runindex.New(config.Client, reader, config.Now)
	return shared{
		index:   index,
		reader:  reader,
		pollers: runview.NewPollers(reader, config.PollInterval, config.Logger),
		events:  runevents.New(reader, index, config.Store, config.Logger),
		submitter: &submission.Submitter{
			Client: config.Client, Store: config.Store, Reader: reader, Index: index, Owners: owners.New(config.Store, config.Now), ApproveUserRuns: config.ApproveUserRuns,
			Definitions: definitions.Checker{Library: stored, Environments: environments.New(config.Store), Targets: config.Targets, Nodes: registry.New(config.Client).In(config.Namespace), Defaults: config.Defaults}, Now: config.Now, Log: config.Logger,
		},
		signer:   signing.New(config.Store, config.Now),
		stopping: make(chan struct{}),
	}
}

// newRunService returns the handlers of runs.
func newRunService(config Config, s shared) runService {
	updater := runupdate.New(config.Client, s.reader, config.Logger)
	return runService{
		Submitter: s.submitter,
		Details:   rundetails.New(s.index, s.reader, s.events, config.Store, config.Logger, s.stopping),
		Streams:   runstreams.New(s.index, s.reader, s.pollers, config.Store, s.stopping),
		Commands: runcommands.New(runcommands.Config{
			Client: config.Client, Index: s.index, Reader: s.reader, Store: config.Store, Updater: updater,
			Signer: s.signer, FourEyes: config.FourEyes, Now: config.Now, Log: config.Logger,
		}),
		Retries: runretry.New(runretry.Config{
			Client: config.Client, Namespace: config.Namespace, Index: s.index, Reader: s.reader, Store: config.Store, Updater: updater, Approvals: s.submitter,
		}),
		Explanations: explanation.New(explanation.Config{
			Client: config.Client, Index: s.index, Reader: s.reader, Events: s.events, Runs: s.submitter, Now: config.Now, Log: config.Logger,
		}),
	}
}
