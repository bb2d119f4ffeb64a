package workers

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/orchestrator"
	"switchyard/activities/placement"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// pageOfNodes is the number of nodes that the registry below lists per page.
const pageOfNodes = 1000

// simulated is a Temporal server with the entries of many nodes, which heartbeat every 2 s.
type simulated struct {
	client.Client // nothing else of it is used

	mu    sync.Mutex
	began time.Time
	nodes []simulatedNode
	// reads and pages count the entries and list pages read since the last call of counted.
	reads, pages int
}

type simulatedNode struct {
	died    time.Time // zero while it heartbeats
	offline bool
	memo    *commonpb.Memo // nil until it is created
}

func (s *simulated) execution(i int) *workflowpb.WorkflowExecutionInfo {
	if n := &s.nodes[i]; n.memo == nil {
		n.memo = s.record(i)
	}
	return &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{WorkflowId: names.NodeWorkflowID(nodeNumber(i))},
		Status:    enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
		Memo:      s.nodes[i].memo,
	}
}

// record returns the memo of the entry of a node.
func (s *simulated) record(i int) *commonpb.Memo {
	record := &historyv1.NodeRecord{Name: nodeNumber(i), State: v1.NodeActive, Registration: &historyv1.NodeRegistration{
		Incarnation: "one", Snapshot: &v1.NodeSnapshot{Name: nodeNumber(i), Incarnation: "one"},
	}}
	if s.nodes[i].offline {
		record.State, record.Reason = v1.NodeOffline, "no heartbeat for 15s"
	}
	memo, err := NewDataConverter().ToPayload(record)
	if err != nil {
		panic(err)
	}
	return &commonpb.Memo{Fields: map[string]*commonpb.Payload{names.NodeMemo: memo}}
}

func nodeNumber(i int) string { return fmt.Sprintf("n%05d", i) }

func (s *simulated) ListWorkflow(_ context.Context, req *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages++
	var from int
	if len(req.GetNextPageToken()) > 0 {
		if _, err := fmt.Sscan(string(req.GetNextPageToken()), &from); err != nil {
			return nil, err
		}
	}
	res := &workflowservice.ListWorkflowExecutionsResponse{}
	for i := from; i < min(from+pageOfNodes, len(s.nodes)); i++ {
		res.Executions = append(res.Executions, s.execution(i))
	}
	if from+pageOfNodes < len(s.nodes) {
		res.NextPageToken = fmt.Append(nil, from+pageOfNodes)
	}
	return res, nil
}

func (s *simulated) DescribeWorkflowExecution(_ context.Context, id, _ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	var i int
	if name, _ := names.ParseNodeWorkflowID(id); len(name) == 0 {
		return nil, serviceerror.NewNotFound(id)
	} else if _, err := fmt.Sscanf(name, "n%d", &i); err != nil {
		return nil, err
	}
	info := s.execution(i)
	d := &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: info}
	if s.nodes[i].offline {
		return d, nil
	}
	until := time.Now()
	if died := s.nodes[i].died; !died.IsZero() {
		until = died
	}
	beats := int64(until.Sub(s.began) / (2 * time.Second))
	snapshot, err := NewDataConverter().ToPayloads(&v1.NodeSnapshot{Name: nodeNumber(i), Incarnation: "one", Sequence: beats + 1})
	if err != nil {
		return nil, err
	}
	// The clock of the server differs from that of the control process.
	at := s.began.Add(time.Duration(beats) * 2 * time.Second).Add(-time.Hour)
	d.PendingActivities = []*workflowpb.PendingActivityInfo{{
		ActivityType: &commonpb.ActivityType{Name: names.HeartbeatActivity}, HeartbeatDetails: snapshot, LastHeartbeatTime: timestamppb.New(at),
	}}
	return d, nil
}

// counted returns the number of entries and pages that were read since the last call.
func (s *simulated) counted() (reads, pages int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	reads, pages = s.reads, s.pages
	s.reads, s.pages = 0, 0
	return reads, pages
}

func (s *simulated) change(i int, to simulatedNode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes[i] = to
}

// startFleet starts the fleet of a leader. The caller stops it.
func (s *simulated) startFleet(t *testing.T) (_ *fleet, stop func()) {
	queue := placement.New(placement.Options{Epoch: "epoch"})
	log := slog.New(slog.DiscardHandler)
	f := newFleet(s, orchestrator.NewPlacement(s, queue, orchestrator.PlacementOptions{Logger: log}), log)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { f.run(ctx) })
	return f, func() {
		cancel()
		running.Wait()
	}
}

// states counts the nodes by their state in a fleet.
func states(f *fleet) map[string]int {
	n := map[string]int{}
	for _, node := range f.figures() {
		n[node.State]++
	}
	return n
}

// TestReadsDoNotGrowWithFleet checks that the leader's reads do not grow with the fleet, and that the leader still
// learns the state of all nodes.
func TestReadsDoNotGrowWithFleet(t *testing.T) {
	t.Parallel()
	for _, size := range []int{250, 3000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := &simulated{began: time.Now(), nodes: make([]simulatedNode, size)}
				f, stop := server.startFleet(t)
				defer stop()
				cycle := time.Duration(size/readsPerRound+2) * readInterval // in which each node is read once

				time.Sleep(time.Second)
				if got := states(f); got[v1.NodeActive] != size {
					t.Fatalf("a second after its start the leader knows %v", got)
				}
				server.counted()
				const seconds = 20
				for range seconds {
					time.Sleep(readInterval)
					if got := states(f); got[v1.NodeActive] != size {
						t.Fatalf("all nodes beat, and they are %v", got)
					}
				}
				reads, pages := server.counted()
				if reads > (seconds+1)*readsPerRound || pages > seconds/3+size/pageOfNodes+1 {
					t.Errorf("%d entries and %d pages were read in %d s", reads, pages, seconds)
				}
				if size < readsPerRound && reads < (seconds-1)*size {
					t.Errorf("a small fleet is read each second, but %d entries were read in %d s", reads, seconds)
				}

				died := time.Now()
				for i := range 50 {
					server.change(i*size/50, simulatedNode{died: died})
				}
				time.Sleep(cycle + 8*time.Second)
				if got := states(f); got[v1.NodeStale] != 50 {
					t.Errorf("50 nodes are silent, and they are %v", got)
				}
				for i := range 50 {
					server.change(i*size/50, simulatedNode{offline: true})
				}
				time.Sleep(listInterval*time.Duration(1+size/listPage) + 2*readInterval)
				if got := states(f); got[v1.NodeOffline] != 50 || got[v1.NodeActive] != size-50 {
					t.Errorf("50 nodes are listed as offline, and they are %v", got)
				}
			})
		})
	}
}

// TestExpectedNodeThatWasSeenIsReadLikeTheOthers checks that a node that has gone offline is not expected again when the process
// expects another one, and read in every round.
func TestExpectedNodeThatWasSeenIsReadLikeTheOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := &simulated{began: time.Now(), nodes: make([]simulatedNode, 2)}
		f, stop := server.startFleet(t)
		defer stop()
		c := &Control{term: &term{fleet: f}, expected: map[string]time.Time{}}
		c.ExpectNodes(nodeNumber(0))
		time.Sleep(readInterval)
		server.change(0, simulatedNode{offline: true})
		c.ExpectNodes(nodeNumber(1))
		time.Sleep(readInterval)
		server.counted()
		time.Sleep(5 * readInterval)
		if reads, _ := server.counted(); reads > 12 {
			t.Errorf("%d reads of two nodes in 5 rounds", reads)
		}
	})
}
