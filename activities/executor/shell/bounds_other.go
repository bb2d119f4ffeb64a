//go:build !linux

package shell

import (
	"errors"

	"switchyard/activities/executor"
	"switchyard/activities/executor/shell/forker"
)

// bounds is supported on Linux only.
type bounds struct{}

func newBounds(treeFactory) *bounds { return &bounds{} }

func (*bounds) validate() error { return errors.New("limits need Linux") }
func (*bounds) close() error    { return nil }

func (b *bounds) acquire(l executor.Limits, _ bool) (*bound, error) {
	if l == (executor.Limits{}) {
		return nil, nil
	}
	return nil, b.validate()
}

type bound struct{}

func (*bound) forker() *forker.Forker { return nil }
func (*bound) resetOOMKills()         {}
func (*bound) oomKilled() bool        { return false }
func (*bound) release() error         { return nil }
