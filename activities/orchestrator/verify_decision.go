package orchestrator

import (
	"context"

	v1 "switchyard/proto/switchyard/v1"
)

// VerifyDecision checks whether a gateway has signed a decision about a run. If not, the answer says why.
func (c *Control) VerifyDecision(ctx context.Context, req *v1.VerifyRequest) (*v1.VerifyResponse, error) {
	refused, err := c.Signer.Verify(ctx, req.GetDecision())
	if err != nil {
		return nil, err
	}
	return &v1.VerifyResponse{Refused: refused}, nil
}
