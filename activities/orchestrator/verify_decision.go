package orchestrator

import (
	"context"

	historyv1 "switchyard/proto/switchyard/history/v1"
)

// VerifyDecision checks whether a gateway has signed a decision about a run. If not, the answer says why.
func (c *Control) VerifyDecision(ctx context.Context, req *historyv1.VerifyRequest) (*historyv1.VerifyResponse, error) {
	refused, err := c.Signer.Verify(ctx, req.GetDecision())
	if err != nil {
		return nil, err
	}
	return &historyv1.VerifyResponse{Refused: refused}, nil
}
