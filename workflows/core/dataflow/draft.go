package dataflow

import (
	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/names"
)

// Draft is a message that is being built.
type Draft struct {
	*State
	parents []*historyv1.ParentOutput
	next    int // parent of the task, after those whose outputs are in parents
	views   map[string]*historyv1.ParentView
	outputs *historyv1.FanOutView // the newest collected ones, until they are used
	isWhole bool                  // it carries the data of ancestors, which could not be stored
}

// Draft returns a message that is about to be built.
func (s *State) Draft() *Draft { return &Draft{State: s, views: map[string]*historyv1.ParentView{}} }

// Call is a call of a local activity whose answer a draft needs.
type Call struct {
	Summary, Activity string
	Args              []any
	Answer            any // receives the answer

	copy    *shared // of an object, and the object
	object  *structpb.Struct
	task    int // whose ancestors have left data, and the version of the data
	version uint64
}

// Answered continues with a draft after a call, which may have failed for good. A call that was interrupted is not answered.
func (d *Draft) Answered(c *Call, err error) {
	switch c.Activity {
	case names.CollectActivity:
		d.outputs = c.Answer.(*historyv1.FanOutView)
		if err != nil {
			d.outputs = &historyv1.FanOutView{Error: err.Error()}
		}
	case names.SaveSharedActivity:
		*c.copy = shared{of: c.object, form: &historyv1.Shared{Key: *c.Answer.(*string)}}
		if err != nil {
			c.copy.form = &historyv1.Shared{Value: c.object}
		}
	case names.SaveAncestorsActivity:
		if d.isWhole = err != nil; !d.isWhole {
			d.ancestors[c.task] = ancestors{key: *c.Answer.(*string), version: c.version}
		}
	}
}
