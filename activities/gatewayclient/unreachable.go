package gatewayclient

import (
	"fmt"
	"strings"
)

// Reason says why a gateway could not be used.
type Reason struct {
	// Gateway is the URL of the gateway.
	Gateway string
	Err     error
}

// UnreachableError means that no gateway of a list could be used, or that the last one of Reasons failed after it had received
// a request that must not be sent twice.
type UnreachableError struct {
	// Reasons has the gateways that were tried, in this order. It has at least one.
	Reasons []Reason
}

// Error names each gateway with its reason.
func (e *UnreachableError) Error() string {
	if len(e.Reasons) == 1 {
		return fmt.Sprintf("gateway %s: %v", e.Reasons[0].Gateway, e.Reasons[0].Err)
	}
	texts := make([]string, len(e.Reasons))
	for i, r := range e.Reasons {
		texts[i] = fmt.Sprintf("%s: %v", r.Gateway, r.Err)
	}
	return fmt.Sprintf("none of %d gateways can be used: %s", len(texts), strings.Join(texts, "; "))
}

// Unwrap returns the errors of the gateways.
func (e *UnreachableError) Unwrap() []error {
	errs := make([]error, len(e.Reasons))
	for i, r := range e.Reasons {
		errs[i] = r.Err
	}
	return errs
}
