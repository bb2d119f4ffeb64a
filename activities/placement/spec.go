package placement

import (
	"cmp"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// spec is what a request asks for. It does not change.
type spec struct {
	ask         string // equal for requests for the same resources, whichever run makes them
	taskType    string
	constraints *v1.Constraints
	need        need
	container   *historyv1.ContainerNeeds // nil if the request has no container needs
	needs       *historyv1.TaskNeeds      // nil if the request has no other needs
	target      Target
	targetErr   error
	avoid       []string
	namesSome   bool   // the constraints name nodes, required or forbidden
	runID       string // used for the limit of tasks per run and node
	// workspace is the folder that the task shares, which is on one node, or nil.
	workspace *historyv1.PlacedWorkspace
	later     need                   // what tasks need that must run on the same node
	gang      *historyv1.GangRequest // that the task is a member of, or nil
}

// newSpec returns what a request of a run asks for. ask is the key of specKeys.
func newSpec(runID string, req *historyv1.TaskRequest, ask string) spec {
	c := req.GetConstraints()
	if w := req.GetWorkspace(); w != nil {
		c = proto.CloneOf(cmp.Or(c, &v1.Constraints{}))
		c.AllowedNodes = []string{w.GetNode()} // the node that has it met the constraints
	}
	target, err := ParseTarget(c.GetTargetNode())
	return spec{
		ask:         ask,
		taskType:    req.GetType(),
		constraints: c,
		namesSome:   c.GetTargetNode() != "" || len(c.GetAllowedNodes())+len(c.GetForbiddenNodes()) > 0,
		need:        needOf(req, target),
		container:   req.GetContainer(),
		needs:       req.GetNeeds(),
		target:      target,
		targetErr:   err,
		avoid:       req.GetAvoidNodes(),
		runID:       runID,
		workspace:   req.GetWorkspace(),
		later:       laterOf(req.GetLater()),
		gang:        req.GetGang(),
	}
}

// specKeys returns two keys: ask is equal for requests for the same resources, class for requests
// that fit the same nodes. Requests that differ only in the order of a list get different keys,
// which costs time but is correct. The members of a gang have a class of their own.
func specKeys(runID string, req *historyv1.TaskRequest) (ask, class string) {
	asked := &historyv1.TaskRequest{
		Type:        req.GetType(),
		Constraints: req.GetConstraints(),
		Resources:   req.GetResources(),
		Container:   req.GetContainer(),
		Needs:       req.GetNeeds(),
		Workspace:   req.GetWorkspace(),
		Later:       req.GetLater(),
	}
	ask = encoded(asked)
	class = ask
	switch {
	case req.GetGang() != nil:
		asked.Gang = req.GetGang()
		class = encoded(asked)
	case req.GetConstraints().GetMaxParallelPerNode() == 0:
		runID = ""
	}
	if runID == "" && len(req.GetAvoidNodes()) == 0 {
		return ask, class
	}
	return ask, class + "\x00" + runID + "\x00" + strings.Join(req.GetAvoidNodes(), "\x00")
}

// encoded returns the encoding of a part of a request.
func encoded(asked *historyv1.TaskRequest) string {
	// Marshalling fails only for invalid UTF-8, which a payload cannot contain.
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(asked)
	if err != nil {
		return asked.String()
	}
	return string(b)
}

func (s *spec) avoids(name string) bool { return slices.Contains(s.avoid, name) }

// namesAll reports whether the request may use any node by name.
func (s *spec) namesAll() bool {
	return s.targetErr == nil && s.target.Node == "" && len(s.constraints.GetAllowedNodes()) == 0
}

// names reports whether the request may use a node of the given name.
func (s *spec) names(name string) bool {
	allowed := s.constraints.GetAllowedNodes()
	return s.targetErr == nil && (s.target.Node == "" || s.target.Node == name) &&
		(len(allowed) == 0 || slices.Contains(allowed, name))
}
