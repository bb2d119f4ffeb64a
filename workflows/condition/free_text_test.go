package condition

import "testing"

func TestCanBeAnyTextRecognizesFreeText(t *testing.T) {
	t.Parallel()
	isChosen := func(ofRun bool, field string) bool { return field == "chosen" || !ofRun && field == "index" }
	for expr, want := range map[string]bool{
		"workflow.input.branch":                    true,
		"workflow.input['branch']":                 true,
		"workflow.input.chosen":                    false,
		"workflow.input":                           true,
		"workflow.context.x":                       true,
		"workflow.name + '-' + workflow.runId":     false,
		"'v' + workflow.input.branch":              true,
		"input.item":                               true,
		"input.item.os":                            true,
		"input.index":                              false,
		"input.chosen.deep[0]":                     false,
		"parent.a.output.x":                        true,
		"a.files":                                  true,
		"parent['a-b'].stdout":                     true,
		"parent.a.stdout.trim()":                   true,
		"parent.a.result.stderr":                   true,
		"parent.a.exitCode":                        false,
		"parent.a.result.exitCode":                 false,
		"parent.a.state":                           false,
		"size(parent.a.output.files)":              false,
		"parent.a.stdout.size()":                   false,
		"int(workflow.input.n) + 1":                false,
		"workflow.input.env == 'prod' ? 'a' : 'b'": false,
		"workflow.input.env == 'prod' ? workflow.input.tag : 'b'": true,
		"has(workflow.input.x)":                                   false,
		"workflow.input.l.exists(x, x == 'a')":                    false,
		"workflow.input.l.map(x, x + 'a').join(' ')":              true,
		"[1, 2]":                  false,
		"{'a': workflow.input.x}": true,
		"'constant'":              false,
		"1 +":                     false,
	} {
		if got := CanBeAnyText(expr, isChosen); got != want {
			t.Errorf("%s: %v", expr, got)
		}
	}
}
