package cli

import (
	"testing"

	"switchyard/cli/exit"
	v1 "switchyard/proto/switchyard/v1"
)

// nightlyAgents turns some tasks of the nightly run into agents.
func nightlyAgents(f *fakeGateway) {
	tasks := f.run.Tasks
	tasks["build"].Result.Agent = &v1.AgentUsage{
		Model: "claude-x", Turns: 12, ToolCalls: 5, InputTokens: 40_000, CacheReadTokens: 8000, CacheWriteTokens: 200, OutputTokens: 3100, CostUsd: 0.21,
	}
	tasks["fetch"].Result = &v1.TaskResult{Agent: &v1.AgentUsage{Model: "local", Turns: 1, ToolCalls: 1, Session: "s-1"}}
	tasks["notify"].Result = &v1.TaskResult{Agent: &v1.AgentUsage{Turns: 99, CostUsd: 9}}
	tasks["notify"].CachedFrom = "nightly-0"
}

func TestRunsGetShowsTheUsageOfAgents(t *testing.T) {
	f := fake(t)
	nightly(f)
	nightlyAgents(f)
	for _, test := range map[string]struct {
		args []string
		want string
	}{
		"a run":             {nil, "\n  agents  2: 13 turns, 6 tool calls, 48,200 tokens in, 3,100 out, $0.21\n"},
		"a task":            {[]string{"build"}, "\nagent      12 turns, 5 tool calls, 48,200 tokens in, 3,100 out, $0.21, claude-x\n"},
		"a task of few":     {[]string{"fetch"}, " 1 turn, 1 tool call, local, session s-1\n"},
		"JSON of the task":  {[]string{"build", "-o", "json"}, `"cacheReadTokens": "8000"`},
		"JSON of the whole": {[]string{"-o", "jsonl"}, `"costUsd":0.21`},
	} {
		run(t, append([]string{"runs", "get", "nightly", "--gateway", f.url}, test.args...)...).prints(t, exit.CodeDone, test.want)
	}
}

func TestRunsRetryRefusesInvalidLimits(t *testing.T) {
	f := fake(t)
	for _, args := range [][]string{
		{"--max-turns", "100"}, {"--max-turns", "=100"}, {"--max-turns", "a=0"}, {"--max-turns", "a=1.5"}, {"--max-turns", "a=99999999999"},
		{"--max-cost", "a"}, {"--max-cost", "a="}, {"--max-cost", "a=-1"}, {"--max-cost", "a=NaN"}, {"--max-cost", "a=Inf"}, {"--max-cost", "a=cheap"},
	} {
		run(t, append([]string{"runs", "retry", "nightly", "--gateway", f.url}, args...)...).ends(t, exit.CodeUsage, args[0])
	}
}
