package export

import (
	"context"

	"google.golang.org/protobuf/proto"

	"switchyard/activities/library"
	"switchyard/gateway/workflows"
	v1 "switchyard/proto/switchyard/v1"
)

// workflowKind gives access to the stored workflows and their schedules.
type workflowKind struct {
	service workflows.Service
	library *library.Library
}

func (k workflowKind) enabled() error { return nil }

func (k workflowKind) list(ctx context.Context) (names, warnings []string, err error) {
	all, err := k.library.List(ctx)
	for _, stored := range all {
		names = append(names, stored.Definition.GetName())
	}
	return sorted(names), nil, err
}

func workflowItem(w *v1.ExportedWorkflow) *v1.ExportedItem {
	return &v1.ExportedItem{Kind: v1.ExportWorkflow, Name: w.GetDefinition().GetName(), Content: &v1.ExportedItem_Workflow{Workflow: w}}
}

func (k workflowKind) find(ctx context.Context, like *v1.ExportedItem) (*v1.ExportedItem, error) {
	stored, err := k.service.Find(ctx, like.GetName())
	if err != nil || stored == nil {
		return nil, err
	}
	w := &v1.ExportedWorkflow{Definition: stored.Definition, Owner: stored.Owner}
	if stored.Schedule != nil {
		w.Schedule = &v1.ExportedSchedule{Paused: stored.Schedule.GetPaused(), Note: stored.Schedule.GetNote()}
	}
	return workflowItem(w), nil
}

func (k workflowKind) check(ctx context.Context, item *v1.ExportedItem) (*v1.ExportedItem, []string, error) {
	checked := proto.CloneOf(item.GetWorkflow())
	def, problems, err := k.service.Check(ctx, checked.GetDefinition())
	if err != nil {
		return nil, nil, err
	}
	checked.Definition = def
	switch {
	case def.GetSchedule() == nil:
		checked.Schedule = nil
	case checked.GetSchedule() == nil:
		checked.Schedule = &v1.ExportedSchedule{Paused: def.GetSchedule().GetPaused()}
	}
	var warnings []string
	for _, p := range problems {
		warnings = append(warnings, "workflow "+def.GetName()+": "+p.GetMessage())
	}
	return workflowItem(checked), warnings, nil
}

func (k workflowKind) isSame(_ context.Context, item, stored *v1.ExportedItem) (bool, error) {
	return proto.Equal(item, stored), nil
}

func (k workflowKind) put(ctx context.Context, item, stored *v1.ExportedItem) error {
	w := item.GetWorkflow()
	o := library.PutOptions{Run: k.service.Definitions.Defaults.FillOptions(nil), Owner: w.GetOwner(), Replace: stored != nil, Adopt: stored != nil}
	if s := w.GetSchedule(); s != nil {
		o.State = &library.ScheduleState{Paused: s.GetPaused(), Said: s.GetNote()}
	}
	_, err := k.library.Put(ctx, w.GetDefinition(), o)
	if err != nil {
		return k.service.Definitions.LibraryError(ctx, item.GetName(), err)
	}
	return nil
}
