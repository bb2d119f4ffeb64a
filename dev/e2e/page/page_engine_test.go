//go:build engines

package page

import "testing"

// stackTest is a test of a page whose stack other tests use at the same time.
type stackTest struct {
	name string
	test func(t *testing.T, s *stack)
}

// runTests runs tests concurrently.
func runTests(t *testing.T, s *stack, tests []stackTest) {
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.test(t, s)
		})
	}
}

// TestPage opens pages of a gateway without log-in. Each kind of view that must become empty belongs to one test.
func TestPage(t *testing.T) {
	t.Parallel()
	s := startStack(t)
	s.put(t, storedDefinition)
	runTests(t, s, []stackTest{
		{"list of runs follows runs", testListOfRunsFollowsRuns},
		{"page of a run follows its tasks", testPageOfARunFollowsItsTasks},
		{"queue follows tasks that wait", testQueueFollowsTasksThatWait},
		{"log of a task is live", testLogOfATaskIsLive},
		{"keyboard steers a schedule", testKeyboardSteersASchedule},
		{"keyboard starts a workflow", testKeyboardStartsAWorkflow},
		{"keyboard decides on approvals", testKeyboardDecidesOnApprovals},
		{"keyboard retries a dead letter", testKeyboardRetriesADeadLetter},
		{"keyboard steers a run", testKeyboardSteersARun},
		{"keyboard drains a node", testKeyboardDrainsANode},
		{"keyboard steers a task", testKeyboardSteersATask},
		{"seven tabs are live", testSevenTabsAreLive},
		{"page is live without a shared worker", testPageIsLiveWithoutASharedWorker},
		{"page continues after its gateway was restarted", testPageContinuesAfterItsGatewayWasRestarted},
	})
}

// TestLogin opens pages of a gateway that requires tokens.
func TestLogin(t *testing.T) {
	t.Parallel()
	runTests(t, startLockedStack(t), []stackTest{
		{"form", testGatewayThatAsksForTokensHasAForm},
		{"log-out in one tab reaches the other", testLogOutInOneTabReachesTheOther},
		{"viewer sees why actions are forbidden", testViewerSeesWhyActionsAreForbidden},
	})
}
