package cli

import (
	"os"
	"strings"
	"testing"

	v1 "switchyard/proto/switchyard/v1"
)

func TestAgentSessionsListsTheFleet(t *testing.T) {
	f := fake(t)
	script(f, &v1.ListNodesResponse{Items: []*v1.Node{
		{Name: "b", State: v1.NodeActive, Capabilities: map[string]string{"gpu": "nvidia", "session/two": "true", "session/one": "true"}},
		{Name: "a", State: v1.NodeOffline, Capabilities: map[string]string{"session/two": "true"}},
	}})
	for format, want := range map[string]string{
		"text":  "SESSION  NODE  STATE\none      b     active\ntwo      a     offline\ntwo      b     active\n",
		"jsonl": `{"session":"one","node":"b","state":"active"}` + "\n" + `{"session":"two","node":"a","state":"offline"}` + "\n" + `{"session":"two","node":"b","state":"active"}` + "\n",
	} {
		got := run(t, "agent", "sessions", "--gateway", f.url, "-o", format)
		if got.code != 0 || got.stdout != want {
			t.Errorf("%s: code %d, stdout\n%s\nstderr\n%s", format, got.code, got.stdout, got.stderr)
		}
	}
}

func TestAgentAttachServesUntilItsProgramEnds(t *testing.T) {
	dir, err := os.MkdirTemp("", "sy") // socket paths are limited in length
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for name, test := range map[string]struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		"no command":      {nil, 2, "", "COMMAND is missing"},
		"bad name":        {[]string{"--name", "a/b", "--", "true"}, 2, "", `"a/b" is not a valid session id`},
		"bad folder":      {[]string{"--scratch-dir", "/no/such/folder", "--", "true"}, 2, "", "--scratch-dir /no/such/folder"},
		"no such program": {[]string{"--scratch-dir", dir, "--", "switchyard-no-such-agent"}, 2, "", "command not found"},
		"named":           {[]string{"--scratch-dir", dir, "--name", "one", "--", "echo", "hello"}, 0, "hello\n", "session one is attached\n"},
		"names itself":    {[]string{"--scratch-dir", dir, "sh", "-c", `echo '{"type":"system","subtype":"init","session_id":"two"}'`}, 0, "", "session two is attached\n"},
		"fails":           {[]string{"--scratch-dir", dir, "--name", "three", "--", "sh", "-c", "echo no key >&2; exit 3"}, 1, "", "no key\nswitchyard: sh has ended with exit code 3\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, append([]string{"agent", "attach"}, test.args...)...)
			if got.code != test.code || got.stdout != test.stdout || !strings.Contains(got.stderr, test.stderr) {
				t.Errorf("code %d, stdout %q, stderr %q", got.code, got.stdout, got.stderr)
			}
		})
	}
}
