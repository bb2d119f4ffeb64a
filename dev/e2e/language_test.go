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
		"tasks.text.state": "failed", "tasks.file.error": `foreach must be a list; this one is of type string: "a.txt"; key=value outputs are texts: write lines(x), json(x) or x.split(separator), or write the output as a JSON object`, "tasks.below.state": "skipped"}},

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

	{name: "checkpoints", definition: `
defaults: { type: shell, retry: { maxRetries: 1, backoffMs: 1 } }
tasks:
  alone: { spec: { command: 'test -s $SWITCHYARD_CHECKPOINT && exec cat $SWITCHYARD_CHECKPOINT; echo step 7 > $SWITCHYARD_CHECKPOINT; exit 1' } }
  each: { spec: { command: 'test -s $SWITCHYARD_CHECKPOINT && exec cat $SWITCHYARD_CHECKPOINT; echo $SWITCHYARD_INDEX > $SWITCHYARD_CHECKPOINT; exit 1' }, parallel: 3, batch: 3 }
`, want: map[string]string{"tasks.alone.result.stdout": "step 7\n", "tasks.each.instances.2.result.stdout": "2\n"}},

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
