package e2e

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"switchyard/dev/processes"
)

// said is a definition by a user who has only read the documentation, with its expected outcome.
type said struct {
	name       string
	definition string // the line with the name is put before it
	args       []string
	exit       int
	// want holds values in the JSON of the run by path, such as tasks.each.instances.1.state; # is the length of a
	// list. Strings are unquoted, anything else is JSON.
	want map[string]string
}

var sayings = []said{
	{name: "count-from-output", definition: `
tasks:
  discover: { type: shell, spec: { command: 'echo "{\"n\": 2}" > $SWITCHYARD_OUTPUT' } }
  some: { type: shell, spec: { command: echo $SWITCHYARD_INDEX/$SWITCHYARD_COUNT }, dependsOn: [discover], parallel: discover.n + 1 }
  none: { type: shell, spec: { command: 'false' }, dependsOn: [discover], parallel: discover.n - 2 }
  last: { type: shell, spec: { command: 'true' }, dependsOn: [none], condition: parent.none.count == 0 && parent.none.exitCode == 0 }
`, want: map[string]string{"tasks.some.count": "3", "tasks.some.instances.2.result.stdout": "2/3\n", "tasks.none.state": "completed",
		"tasks.none.instances.#": "0", "tasks.last.state": "completed"}},

	{name: "no-count", exit: 1, definition: `
defaults: { type: shell }
tasks:
  discover: { spec: { command: 'echo "{\"neg\": -1, \"frac\": 1.5, \"text\": \"many\", \"file\": \"a.txt\"}" > $SWITCHYARD_OUTPUT' } }
  neg: { spec: { command: 'true' }, dependsOn: [discover], parallel: discover.neg }
  frac: { spec: { command: 'true' }, dependsOn: [discover], parallel: discover.frac }
  text: { spec: { command: 'true' }, dependsOn: [discover], parallel: discover.text }
  file: { spec: { command: 'true' }, dependsOn: [discover], foreach: discover.file }
  below: { spec: { command: 'true' }, dependsOn: [file] }
`, want: map[string]string{"tasks.neg.reason": "fan_out", "tasks.neg.error": "evaluate parallel: the number of instances is negative: -1",
		"tasks.frac.error": "evaluate parallel: the number of instances is 1.5, which is not an integer",
		"tasks.text.state": "failed", "tasks.file.error": `foreach must be a list; this one is of type string: "a.txt"`, "tasks.below.state": "skipped"}},

	{name: "condition-without-a-value", exit: 1, definition: `
tasks:
  a: { type: shell, spec: { command: 'echo n=x > $SWITCHYARD_OUTPUT' } }
  deploy: { type: shell, spec: { command: 'true' }, dependsOn: [a], condition: 'int(parent.a.output.n) > 3' }
  tell: { type: shell, spec: { command: 'true' }, dependsOn: [deploy], when: one_failed }
`, want: map[string]string{"state": "failed", "tasks.deploy.state": "failed", "tasks.deploy.reason": "condition_error", "tasks.tell.state": "completed",
		"tasks.deploy.error": "`int(parent.a.output.n) > 3` cannot be evaluated: 1:4: type conversion error from 'string' to 'int'; parent.a.output.n is \"x\""}},

	{name: "items-of-all-kinds", definition: `
tasks:
  each:
    type: shell
    spec: { command: 'printf %s "$SWITCHYARD_ITEM"; cat $SWITCHYARD_INPUT >&2' }
    foreach: [1.5, true, "", {url: "x?a=1&b=2"}, [1], "üñï✓", "$(exit 9)", "two\nlines"]
`, want: map[string]string{"tasks.each.count": "8", "tasks.each.instances.0.result.stdout": "1.5", "tasks.each.instances.1.result.stdout": "true",
		"tasks.each.instances.2.result.stdout": "", "tasks.each.instances.3.result.stdout": `{"url":"x?a=1&b=2"}`,
		"tasks.each.instances.3.result.stderr": `{"item":{"url":"x?a=1&b=2"},"index":3,"count":8}` + "\n",
		"tasks.each.instances.5.result.stdout": "üñï✓", "tasks.each.instances.6.result.stdout": "$(exit 9)", "tasks.each.instances.7.result.stdout": "two\nlines"}},

	{name: "outputs-downstream", definition: `
tasks:
  each:
    type: shell
    spec: { command: 'echo "{\"v\": $SWITCHYARD_INDEX}" > $SWITCHYARD_OUTPUT; test $SWITCHYARD_INDEX != 1' }
    parallel: 3
    batch: 2
    maxFailures: 1
    retry: { maxRetries: 0 }
  sums: { type: shell, spec: { command: echo $SWITCHYARD_ITEM }, dependsOn: [each], foreach: "parent.each.outputs.filter(o, o != null).map(o, o.v * 10 + 1)" }
  all:
    type: shell
    spec: { command: 'echo "$O|$C"; cat $SWITCHYARD_INPUT' }
    env: { O: "${{ parent.each.outputs }}", C: "${{ parent.each.count }} ${{ parent.each.completed }} ${{ parent.each.failed }} ${{ parent.each.exitCode }}" }
    dependsOn: [each]
`, want: map[string]string{"tasks.each.counts": `{"completed":2,"failed":1}`, "tasks.sums.instances.1.result.stdout": "21\n",
		"tasks.all.result.stdout": `[{"v":0},null,{"v":2}]|3 2 1 1` + "\n" +
			`{"ancestors":{"each":{"completed":2,"count":3,"exitCode":1,"failed":1,"instances":[{"index":0,"state":"completed"},{"index":1,"state":"failed"},{"index":2,"state":"completed"}],"state":"completed"}},` +
			`"each":[{"v":0},null,{"v":2}]}` + "\n"}},

	{name: "stops-early", exit: 1, definition: `
tasks:
  each: { type: shell, spec: { command: exit 3 }, parallel: 40, concurrency: 1, retry: { maxRetries: 0 } }
  after: { type: shell, spec: { command: echo $CODE }, env: { CODE: "${{ parent.each.exitCode }}" }, dependsOn: [each], when: all_failed }
`, want: map[string]string{"tasks.each.reason": "instances", "tasks.each.counts": `{"failed":1,"skipped":39}`, "tasks.each.instances.39.reason": "max_failures",
		"tasks.after.result.stdout": "3\n"}},

	{name: "halt", exit: 1, definition: `
failurePolicy: halt
defaults: { type: shell, retry: { maxRetries: 0 } }
tasks:
  excused: { spec: { command: exit 1 }, continueOnError: true }
  bad: { spec: { command: exit 4 }, dependsOn: [excused] }
  plain: { spec: { command: 'true' }, dependsOn: [clean-up] }
  cond: { spec: { command: 'true' }, dependsOn: [bad], condition: parent.bad.exitCode == 4 }
  clean-up: { spec: { command: 'true' }, dependsOn: [bad], onFailure: run }
  always: { spec: { command: 'true' }, dependsOn: [bad], when: always }
`, want: map[string]string{"tasks.bad.state": "failed", "tasks.plain.state": "skipped", "tasks.cond.state": "skipped",
		"tasks.clean-up.state": "completed", "tasks.always.state": "completed"}},

	{name: "triggers", exit: 1, definition: `
defaults: { type: shell, retry: { maxRetries: 0 } }
tasks:
  ok: { spec: { command: 'true' } }
  bad: { spec: { command: exit 4 } }
  off: { spec: { command: 'true' }, dependsOn: [ok], condition: 'false' }
  all-success: { spec: { command: 'true' }, dependsOn: [ok, off], when: all_success }
  none-failed: { spec: { command: 'true' }, dependsOn: [off], when: none_failed }
  one-success: { spec: { command: 'true' }, dependsOn: [ok, bad], when: one_success }
  all-failed: { spec: { command: 'true' }, dependsOn: [ok, bad], when: all_failed }
  both-hold: { spec: { command: 'true' }, dependsOn: [bad], when: one_failed, condition: parent.bad.exitCode == 4 }
  one-holds: { spec: { command: 'true' }, dependsOn: [bad], when: one_failed, condition: parent.bad.exitCode == 5 }
`, want: map[string]string{"tasks.all-success.reason": "when", "tasks.none-failed.state": "completed", "tasks.one-success.state": "completed",
		"tasks.all-failed.state": "skipped", "tasks.both-hold.state": "completed", "tasks.one-holds.reason": "condition"}},

	{name: "condition-guards", exit: 1, definition: `
defaults: { type: shell, retry: { maxRetries: 0 } }
inputs: { branch: { default: main } }
tasks:
  test: { spec: { command: exit 1 } }
  build: { spec: { command: 'true' }, dependsOn: [test] }
  deploy: { spec: { command: 'true' }, dependsOn: [build], condition: workflow.input.branch == 'main' }
  announce: { spec: { command: 'true' }, dependsOn: [deploy] }
  above: { spec: { command: 'true' }, dependsOn: [build], condition: parent.test.exitCode == 1 }
  notify: { spec: { command: 'true' }, dependsOn: [build], condition: "parent['build'].exitCode == -1 && workflow.input.branch == 'main'" }
  any: { spec: { command: 'true' }, dependsOn: [build], condition: "parent.exists(name, name == 'build')" }
  forced: { spec: { command: 'true' }, dependsOn: [build], condition: workflow.input.branch == 'main', onFailure: run }
`, want: map[string]string{"tasks.deploy.reason": "upstream", "tasks.deploy.error": `task "test" failed, and the condition of "deploy" does not mention "build"`,
		"tasks.announce.reason": "upstream", "tasks.above.reason": "upstream", "tasks.notify.state": "completed", "tasks.any.state": "completed",
		"tasks.forced.state": "completed"}},

	{name: "deadlines", exit: 1, definition: `
defaults: { type: shell }
tasks:
  queued: { spec: { command: 'true' }, constraints: { nodeLabels: [nowhere] }, deadline: 500ms }
  waits: { spec: { command: exit 1 }, retry: { backoffMs: 600000 }, deadline: 2s }
  runs: { spec: { command: sleep 600 }, deadline: 2s }
  asks: { type: approval, deadline: 500ms }
  after: { spec: { command: echo $S }, env: { S: "${{ parent.runs.state }}" }, dependsOn: [queued, waits, runs, asks], when: all_failed }
`, want: map[string]string{"tasks.queued.reason": "deadline", "tasks.waits.reason": "deadline", "tasks.waits.state": "failed", "tasks.runs.reason": "deadline",
		"tasks.asks.reason": "deadline", "tasks.after.result.stdout": "failed\n"}},

	{name: "deadline-of-the-run", exit: 1, definition: `
deadline: 1s
tasks:
  asks: { type: approval }
  after: { type: shell, spec: { command: 'true' }, dependsOn: [asks] }
`, want: map[string]string{"state": "failed", "reason": "deadline", "tasks.asks.state": "cancelled"}},

	{name: "retry-when", definition: `
defaults: { type: shell, retry: { maxRetries: 3, backoffMs: 1 } }
tasks:
  again: { spec: { command: test $SWITCHYARD_ATTEMPT = 1 || exit 75 }, retry: { when: attempt.exitCode == 75 } }
  never: { spec: { command: exit 2 }, retry: { when: attempt.exitCode == 75 }, continueOnError: true }
  reset: { spec: { command: 'echo connection reset >&2; test $SWITCHYARD_ATTEMPT = 2' }, retry: { when: "attempt.stderr.contains('reset') && attempt.number < 2" } }
`, want: map[string]string{"tasks.again.attempt": "1", "tasks.never.attempt": "0", "tasks.never.state": "failed", "tasks.reset.attempt": "2"}},

	{name: "inputs", args: []string{"--input", "who=a=b c", "--input", "n=0", "--input", "l=[]"}, definition: `
inputs:
  who: { required: true }
  n: { type: integer, default: 3 }
  l: { type: list, default: [1] }
  e: { enum: [x, y], default: x }
tasks:
  a: { type: shell, spec: { command: 'echo "$W|$N|$L|$E"' }, env: { W: "${{ workflow.input.who }}", N: "${{ workflow.input.n - 1 }}", L: "${{ workflow.input.l }}", E: "${{ workflow.input.e }}" } }
`, want: map[string]string{"tasks.a.result.stdout": "a=b c|-1|[]|x\n"}},

	{name: "templates", definition: `
tasks:
  d: { type: shell, spec: { command: 'echo "{\"dir\": \"/tmp\", \"n\": 3, \"s\": \"a\\\"b\"}" > $SWITCHYARD_OUTPUT; echo hello' } }
  there: { type: shell, spec: { command: pwd, workingDirectory: "${{ parent.d.output.dir }}" }, dependsOn: [d] }
  list: { type: shell, spec: { command: [printf, '%s,', "${{ parent.d.output.n }}", "x${{ parent.d.output.n }}-${{ workflow.name }}"] }, dependsOn: [d] }
  env: { type: shell, spec: { command: 'printf "%s|" "$A" "$B" "$C"' }, env: { A: "${{ parent.d.output.s }}", B: "${{ '}}' }}", C: "$${{ kept" }, dependsOn: [d] }
`, want: map[string]string{"tasks.there.result.stdout": "/tmp\n", "tasks.list.result.stdout": "3,x3-templates,", "tasks.env.result.stdout": `a"b|}}|${{ kept|`}},

	{name: "template-without-a-value", exit: 1, definition: `
tasks:
  d: { type: shell, spec: { command: 'true' } }
  a: { type: shell, spec: { command: 'echo ${{ parent.d.output.missing }}' }, dependsOn: [d] }
`, want: map[string]string{"tasks.a.state": "failed", "tasks.a.reason": "expression", "tasks.a.attempt": "0"}},

	{name: "context", definition: `
context: { a: 1, deep: { x: 1 } }
tasks:
  first: { type: shell, spec: { command: 'echo "{\"b\": 2, \"deep\": {\"y\": 5}}" > $SWITCHYARD_CONTEXT_UPDATE' } }
  later: { type: shell, spec: { command: 'echo a=9 > $SWITCHYARD_CONTEXT_UPDATE; cat $SWITCHYARD_INPUT' }, dependsOn: [first], condition: workflow.context.b == 2 }
`, want: map[string]string{"context": `{"a":"9","b":2,"deep":{"y":5}}`, "tasks.later.result.stdout": `{"ancestors":{"first":{"attempt":0,"exitCode":0,"state":"completed"}},"context":{"a":1,"b":2,"deep":{"y":5}}}` + "\n"}},

	{name: "too-large", exit: 1, definition: `
defaults: { type: shell, retry: { maxRetries: 0 } }
tasks:
  context: { spec: { command: 'printf k=%040000d 1 > $SWITCHYARD_CONTEXT_UPDATE' } }
  output: { spec: { command: 'head -c 9000000 /dev/zero | tr "\0" x > $SWITCHYARD_OUTPUT' } }
`, want: map[string]string{"tasks.context.error": "SWITCHYARD_CONTEXT_UPDATE: is larger than 32 KiB", "tasks.output.error": "SWITCHYARD_OUTPUT: is larger than 8192 KiB"}},

	{name: "checkpoints", definition: `
defaults: { type: shell, retry: { maxRetries: 1, backoffMs: 1 } }
tasks:
  alone: { spec: { command: 'test -s $SWITCHYARD_CHECKPOINT && exec cat $SWITCHYARD_CHECKPOINT; echo step 7 > $SWITCHYARD_CHECKPOINT; exit 1' } }
  each: { spec: { command: 'test -s $SWITCHYARD_CHECKPOINT && exec cat $SWITCHYARD_CHECKPOINT; echo $SWITCHYARD_INDEX > $SWITCHYARD_CHECKPOINT; exit 1' }, parallel: 3, batch: 3 }
`, want: map[string]string{"tasks.alone.result.stdout": "step 7\n", "tasks.each.instances.2.result.stdout": "2\n"}},

	{name: "child-runs", exit: 1, definition: `
tasks:
  each:
    type: run
    foreach: [a, b]
    spec:
      input: { who: "${{ input.item }}" }
      definition:
        name: child
        inputs: { who: { required: true } }
        tasks: { hello: { type: shell, env: { W: "${{ workflow.input.who }}" }, spec: { command: 'echo said=$W > $SWITCHYARD_CONTEXT_UPDATE' } } }
  fails: { type: run, spec: { definition: { name: child, tasks: { a: { type: shell, spec: { command: exit 3 }, retry: { maxRetries: 0 } } } } }, retry: { maxRetries: 0 } }
  unknown: { type: run, spec: { workflow: "${{ 'not-stored' }}" } }
`, want: map[string]string{"tasks.each.instances.1.result.output.said": "b", "tasks.fails.reason": "child_run",
		"tasks.unknown.state": "failed", "tasks.unknown.error": `no definition is stored under the name "not-stored"`}},

	{name: "snake-case", definition: `
failure_policy: continue
max_parallel: 2
tasks:
  a: { type: shell, spec: { command: pwd, working_directory: /tmp }, parallel: 2, max_failures: 1, retry: { max_retries: 0, backoff_ms: 1 } }
  b: { type: shell, spec: { command: 'true' }, depends_on: [a], on_failure: run, continue_on_error: true, constraints: { avoid_gaming: true }, resources: { memory_mb: 1 } }
`, want: map[string]string{"tasks.a.instances.0.result.stdout": "/tmp\n", "tasks.b.state": "completed"}},
}

// TestLanguage runs definitions that cover each part of the language, especially edge cases.
func TestLanguage(t *testing.T) {
	t.Parallel()
	s := shared(t)
	for _, test := range sayings {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"run", write(t, "name: "+test.name+test.definition), "--gateway", s.Gateway, "-o", "json"}, test.args...)
			code, stdout, stderr := run(t, args...)
			if code != test.exit {
				t.Fatalf("exit code %d, want %d:\n%s", code, test.exit, processes.Tail(stderr))
			}
			var d any
			if err := json.Unmarshal([]byte(stdout), &d); err != nil {
				t.Fatalf("not a JSON document: %v\n%s", err, processes.Tail(stdout))
			}
			for path, want := range test.want {
				if got := at(d, path); got != want {
					t.Errorf("%s is %q, want %q", path, got, want)
				}
			}
		})
	}
}

// at returns the value at a path in a document; see said.
func at(d any, path string) string {
	for step := range strings.SplitSeq(path, ".") {
		switch v := d.(type) {
		case map[string]any:
			d = v[step]
		case []any:
			index, err := strconv.Atoi(step)
			switch {
			case step == "#":
				d = len(v)
			case err == nil && index < len(v):
				d = v[index]
			default:
				return "(nothing)"
			}
		default:
			return "(nothing)"
		}
	}
	if text, ok := d.(string); ok {
		return text
	}
	text, err := json.Marshal(d)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
