package subagent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor/subagent/program/streamjson"
	v1 "switchyard/proto/switchyard/v1"
)

// leading is a program that reports a session, or that it resumes one, and answers with $ANSWER. It fails while the
// file $BROKEN exists.
const leading = `#!/bin/sh
prompt=$(cat)
session=s-1
case "$*" in *"--resume s-1"*) echo "resumed" ;; esac
echo '{"type":"system","subtype":"init","session_id":"'$session'","model":"m"}'
[ ! -e "$BROKEN" ] || exit 3
echo '{"type":"assistant","message":{"id":"1","content":[{"type":"text","text":"hello"}],"usage":{"input_tokens":7,"output_tokens":2}}}'
echo '{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"'$ANSWER'","session_id":"'$session'","total_cost_usd":0.5,"usage":{"input_tokens":7,"output_tokens":2}}'
`

// newProgram returns a trial whose agent is driven by a program.
func newProgram(t *testing.T, answer string) (c *trial, broken string) {
	t.Helper()
	c = newTrial(t, scriptedModelIsNotAsked)
	dir := t.TempDir()
	program := filepath.Join(dir, "leading")
	if err := os.WriteFile(program, []byte(leading), 0o700); err != nil {
		t.Fatal(err)
	}
	broken = filepath.Join(dir, "broken")
	c.executor.o.Shell = shells
	c.spec = map[string]any{"prompt": "do it", "command": []any{"sh", program}} // run through sh: the file itself could be busy while another test forks
	c.env = map[string]string{"ANSWER": answer, "BROKEN": broken}
	return c, broken
}

func TestProgramDrivesAnAgent(t *testing.T) {
	t.Parallel()
	c, broken := newProgram(t, "done")
	if err := os.WriteFile(broken, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if result, _, err := c.run(t.Context()); err != nil || result.ExitCode != 3 {
		t.Fatalf("a program that fails: %+v, %v", result, err)
	}
	if err := os.Remove(broken); err != nil {
		t.Fatal(err)
	}
	result, output := c.must()
	if u := result.Agent.Usage; output["text"] != "done" || u.GetTurns() != 1 || u.GetCostUsd() != 0.5 || u.GetSession() != "s-1" {
		t.Errorf("output %v, usage %v", output, u)
	}
	if log := c.stdout.String(); !strings.Contains(log, "resumed") || !strings.Contains(log, "hello") {
		t.Errorf("the log is %q", log)
	}
}

func TestAnswerOfAProgramMustMatchItsSchema(t *testing.T) {
	t.Parallel()
	c, _ := newProgram(t, "done")
	c.spec["outputSchema"] = map[string]any{"type": "object", "required": []any{"score"}}
	c.mustFail(v1.ReasonOutput, "does not match outputSchema")
}

func TestNumbersOfAnAnswerAreExactOrRefused(t *testing.T) {
	t.Parallel()
	schema, err := newAnswerSchema(&structpb.Struct{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := schema.parse(`{"ids": [1, 9007199254740993]}`); err == nil || !strings.Contains(err.Error(), "ids[1]: 9007199254740993 cannot be kept exactly") {
		t.Errorf("the answer of a model: %v", err)
	}
	transcript := streamjson.NewTranscript(time.Now)
	transcript.Add([]byte(`{"type":"result","subtype":"success","structured_output":{"id":9007199254740993}}`), 0)
	if output := string(transcript.Output()); output != `{"id":9007199254740993}` {
		t.Errorf("the answer of a program is %s", output)
	}
}
