package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/encoding/protojson"

	"switchyard/activities/library"
	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/definition"
)

// Types of the permanent errors of LoadWorkflow.
const (
	unknownWorkflowError = "UnknownWorkflow"
	badInputError        = "BadInput"
)

// LoadWorkflow resolves the name of a stored workflow to the input of a run: the definition as it is stored now, and the
// run's input with defaults. If the result is large, it is stored in the run's home and returned by reference.
func (c *Children) LoadWorkflow(ctx context.Context, home string, in *historyv1.RunInput) (*historyv1.RunInput, error) {
	name := in.GetWorkflow()
	if in.GetDefinition() != nil || len(in.GetPacked()) > 0 {
		return nil, final(badInputError, fmt.Errorf("the run was started with both a definition and the workflow name %s; give only one of them", strconv.Quote(name)))
	}
	stored, err := c.Library.Get(ctx, name)
	if errors.Is(err, library.ErrUnknown) {
		return nil, final(unknownWorkflowError, fmt.Errorf("no workflow is stored under the name %s; `workflows list` shows the stored ones, `workflows put FILE` stores one", strconv.Quote(name)))
	}
	if err != nil {
		return nil, err
	}
	// A newer version of this program with new rules may have been installed since the workflow was stored.
	def, err := definition.Complete(stored.Definition)
	if err != nil {
		return nil, final(badInputError, fmt.Errorf("workflow %s: %w", name, err))
	}
	c.Defaults.FillDefinition(def)
	whole := &historyv1.RunInput{Definition: def, Options: c.Defaults.FillOptions(in.GetOptions()), By: in.GetBy(), Batch: in.GetBatch(), ByRole: in.GetByRole(), SignedDecisions: in.GetSignedDecisions()}
	if whole.Input, err = definition.Input(def, in.GetInput()); err != nil {
		return nil, final(badInputError, fmt.Errorf("input of workflow %s: %w", name, err))
	}
	if whole.References, err = definition.References(def); err != nil {
		return nil, final(badInputError, fmt.Errorf("workflow %s: %w", name, err))
	}
	text, err := protojson.Marshal(whole)
	if err != nil {
		return nil, final(badInputError, fmt.Errorf("the input of workflow %s is not JSON: %w", name, err))
	}
	if len(text) > definition.MaxAnswerBytes {
		return saveInput(ctx, c.Store, home, whole)
	}
	return whole, nil
}

// final returns a non-retryable error.
func final(kind string, err error) error {
	return temporal.NewNonRetryableApplicationError(err.Error(), kind, nil)
}
