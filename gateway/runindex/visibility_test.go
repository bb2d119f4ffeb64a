package runindex

import (
	"cmp"
	"context"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/gateway/auth"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
	"switchyard/workflows/visibility"
)

// noon is the time of the index.
var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// fakeVisibility is a Temporal server with executions of runs. It understands the queries of this package, and fails the test
// on any other. Like some databases, it ignores case. It lists two executions a page, the oldest first.
type fakeVisibility struct {
	client.Client // nothing else of it is used

	t    *testing.T
	runs []*workflowpb.WorkflowExecutionInfo
	// hidden holds executions that visibility does not list yet.
	hidden []*workflowpb.WorkflowExecutionInfo

	mu    sync.Mutex
	lists int // number of listed pages
}

// index returns an index of the runs of the server.
func (f *fakeVisibility) index() *Index {
	return New(f, runview.NewReader(f, "default", nil, nil), func() time.Time { return noon })
}

// execution returns an execution that started some time before noon. It is open if its status is RUNNING, and otherwise it
// closed a minute after its start.
func execution(id, runID string, before time.Duration, status enumspb.WorkflowExecutionStatus, known visibility.Attributes) *workflowpb.WorkflowExecutionInfo {
	attributes, err := known.Encode()
	if err != nil {
		panic(err) // the attributes come from the tests
	}
	info := &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: runID}, Type: &commonpb.WorkflowType{Name: names.RunWorkflow},
		StartTime: timestamppb.New(noon.Add(-before)), Status: status, SearchAttributes: attributes,
	}
	if status != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		info.CloseTime = timestamppb.New(noon.Add(time.Minute - before))
	}
	return info
}

// Statuses of executions.
const (
	running   = enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
	completed = enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
	failed    = enumspb.WORKFLOW_EXECUTION_STATUS_FAILED
)

// operator returns the context of a request of a caller that sees all runs.
func operator(t *testing.T) context.Context {
	return auth.With(t.Context(), &auth.Principal{Name: "olga", Role: v1.Role_ROLE_OPERATOR, Kind: auth.KindToken})
}

// ann returns the context of a request of an owner of runs.
func ann(t *testing.T) context.Context {
	return auth.With(t.Context(), &auth.Principal{Name: "ann", Role: v1.Role_ROLE_USER, Kind: auth.KindToken})
}

// idsOf returns "<run> <execution>" of executions.
func idsOf(found []*workflowpb.WorkflowExecutionInfo) (ids []string) {
	for _, info := range found {
		ids = append(ids, info.GetExecution().GetWorkflowId()+" "+info.GetExecution().GetRunId())
	}
	return ids
}

// ListWorkflow returns a page of the executions that a query selects.
func (f *fakeVisibility) ListWorkflow(_ context.Context, req *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	f.mu.Lock()
	f.lists++
	f.mu.Unlock()
	selected := f.selectBy(req.GetQuery())
	from, _ := strconv.Atoi(string(req.GetNextPageToken()))
	to := min(from+min(2, int(req.GetPageSize())), len(selected))
	res := &workflowservice.ListWorkflowExecutionsResponse{Executions: selected[from:to]}
	if to < len(selected) {
		res.NextPageToken = []byte(strconv.Itoa(to))
	}
	return res, nil
}

// CountWorkflow counts the executions that a query selects, by status if the query asks for that.
func (f *fakeVisibility) CountWorkflow(_ context.Context, req *workflowservice.CountWorkflowExecutionsRequest) (*workflowservice.CountWorkflowExecutionsResponse, error) {
	query, isGrouped := strings.CutSuffix(req.GetQuery(), " GROUP BY ExecutionStatus")
	selected := f.selectBy(query)
	res := &workflowservice.CountWorkflowExecutionsResponse{Count: int64(len(selected))}
	if !isGrouped {
		return res, nil
	}
	counts := map[string]int64{}
	for _, info := range selected {
		counts[info.GetStatus().String()]++
	}
	for _, status := range slices.Sorted(maps.Keys(counts)) {
		payload, err := converter.GetDefaultDataConverter().ToPayload(status)
		if err != nil {
			return nil, err
		}
		res.Groups = append(res.Groups, &workflowservice.CountWorkflowExecutionsResponse_AggregationGroup{
			GroupValues: []*commonpb.Payload{payload}, Count: counts[status],
		})
	}
	return res, nil
}

// DescribeWorkflowExecution returns the newest execution of a run.
func (f *fakeVisibility) DescribeWorkflowExecution(_ context.Context, id, _ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	var newest *workflowpb.WorkflowExecutionInfo
	for _, info := range slices.Concat(f.runs, f.hidden) {
		if info.GetExecution().GetWorkflowId() == id && (newest == nil || newest.GetStartTime().AsTime().Before(info.GetStartTime().AsTime())) {
			newest = info
		}
	}
	if newest == nil {
		return nil, serviceerror.NewNotFound("there is no workflow " + id)
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: newest}, nil
}

// selectBy returns the executions that a query selects.
func (f *fakeVisibility) selectBy(query string) []*workflowpb.WorkflowExecutionInfo {
	f.t.Helper()
	state := ""
	for _, s := range v1.RunStates() {
		if rest, ok := strings.CutSuffix(query, " AND "+stateQueries[s]); ok {
			query, state = rest, s
			break
		}
	}
	var selected []*workflowpb.WorkflowExecutionInfo
	for _, info := range f.runs {
		holds := state == "" || runview.ListedRun(info).GetState() == state
		for condition := range strings.SplitSeq(query, " AND ") {
			holds = holds && f.holds(condition, info)
		}
		if holds {
			selected = append(selected, info)
		}
	}
	slices.SortStableFunc(selected, func(a, b *workflowpb.WorkflowExecutionInfo) int {
		return a.GetStartTime().AsTime().Compare(b.GetStartTime().AsTime())
	})
	return selected
}

// comparison is a condition of a query: an attribute, an operator and its operands.
var comparison = regexp.MustCompile(`^(\w+) (=|!=|<=|>=|>|IN|STARTS_WITH|IS NULL)(?: \(?(.*?)\)?)?$`)

// holds reports whether an execution satisfies a condition.
func (f *fakeVisibility) holds(condition string, info *workflowpb.WorkflowExecutionInfo) bool {
	f.t.Helper()
	parts := comparison.FindStringSubmatch(condition)
	if parts == nil {
		f.t.Fatalf("unknown condition %q", condition)
	}
	operands := strings.Split(strings.ReplaceAll(parts[3], "'", ""), ", ")
	known := visibility.Decode(info.GetSearchAttributes())
	values, isKnown := map[string][]string{
		"WorkflowType": {info.GetType().GetName()}, "ExecutionStatus": {info.GetStatus().String()},
		"WorkflowId": {info.GetExecution().GetWorkflowId()}, "StartTime": {literal(info.GetStartTime())}, "CloseTime": {literal(info.GetCloseTime())},
		names.OwnerAttribute: {known.Owner}, names.ParentAttribute: {known.Parent}, names.WorkflowAttribute: {known.Workflow},
		names.TriggerAttribute: {known.Trigger}, names.TypesAttribute: known.Types, names.SubmittedAttribute: {literal(timestamppb.New(known.Submitted))},
	}[parts[1]]
	if !isKnown {
		f.t.Fatalf("unknown attribute in %q", condition)
	}
	return slices.ContainsFunc(values, func(value string) bool {
		switch parts[2] {
		case "IN", "=":
			return slices.ContainsFunc(operands, func(operand string) bool { return strings.EqualFold(operand, value) })
		case "!=":
			return value != operands[0]
		case "STARTS_WITH":
			return strings.HasPrefix(strings.ToLower(value), strings.ToLower(operands[0]))
		case "IS NULL":
			return value == ""
		}
		order := compareTimes(f.t, value, operands[0])
		return value != "" && (parts[2] == ">" && order > 0 || parts[2] == ">=" && order >= 0 || parts[2] == "<=" && order <= 0)
	})
}

// literal formats a time as queries write it. A nil time gives "".
func literal(at *timestamppb.Timestamp) string {
	if at == nil {
		return ""
	}
	return strings.Trim(QuoteTime(at), "'")
}

// compareTimes compares two times in the form of literal.
func compareTimes(t *testing.T, a, b string) int {
	t.Helper()
	if a == "" || b == "" {
		return cmp.Compare(a, b)
	}
	first, err := time.Parse(time.RFC3339Nano, a)
	if err != nil {
		t.Fatal(err)
	}
	second, err := time.Parse(time.RFC3339Nano, b)
	if err != nil {
		t.Fatal(err)
	}
	return first.Compare(second)
}
