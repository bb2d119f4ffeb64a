//go:build !linux

package shell

import "context"

// endLeftover is nil: without /proc, nothing shows which processes belong to an attempt.
var endLeftover func(ctx context.Context, id string) error
