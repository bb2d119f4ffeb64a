package interpreter

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"
)

func value(t *testing.T, v any) *structpb.Value {
	t.Helper()
	value, err := structpb.NewValue(v)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestTextsRunWithTheInterpreterThatTheyAsk(t *testing.T) {
	for name, test := range map[string]struct {
		text  string
		shell any
		args  []string
		want  []string
		file  bool
	}{
		"one line":                 {"make", nil, nil, []string{"sh", "-c", "make"}, false},
		"one line and blank ones":  {"\n  make\n\n", nil, nil, []string{"sh", "-c", "\n  make\n\n"}, false},
		"several lines":            {"cd /src\nmake", nil, nil, []string{"sh", "-ec", "cd /src\nmake"}, false},
		"a long line":              {"make \\\n  all\n", nil, nil, []string{"sh", "-ec", "make \\\n  all\n"}, false},
		"arguments":                {"echo $1", nil, []string{"a"}, []string{"sh", "-c", "echo $1", "sh", "a"}, false},
		"#! line":                  {"#!/bin/bash\nx", nil, nil, []string{"/bin/bash", "FILE"}, true},
		"#! line, one argument":    {"#! /usr/bin/env \t -S python3 -u \r\nx", nil, []string{"a"}, []string{"/usr/bin/env", "-S python3 -u", "FILE", "a"}, true},
		"#! line before shell":     {"#!/bin/bash\nx", "python", nil, []string{"/bin/bash", "FILE"}, true},
		"#! line alone":            {"#!/bin/cat", nil, nil, []string{"/bin/cat", "FILE"}, true},
		"#! without a program":     {"#! \nx", nil, nil, []string{"sh", "-ec", "#! \nx"}, false},
		"#! in the second line":    {"\n#!/bin/bash\nx", nil, nil, []string{"sh", "-ec", "\n#!/bin/bash\nx"}, false},
		"sh":                       {"a\nb", "sh", nil, []string{"sh", "-ec", "a\nb"}, false},
		"bash":                     {"a | b", "bash", []string{"x"}, []string{"bash", "-eo", "pipefail", "-c", "a | b", "bash", "x"}, false},
		"python":                   {"print(1)", "python", []string{"x"}, []string{"python3", "FILE", "x"}, true},
		"node":                     {"1", "node", nil, []string{"node", "FILE"}, true},
		"a list":                   {"x", []any{"bash", "-euo", "pipefail", "-c"}, nil, []string{"bash", "-euo", "pipefail", "-c", "x"}, false},
		"a list with arguments":    {"x", []any{"/bin/zsh", "-c"}, []string{"a"}, []string{"/bin/zsh", "-c", "x", "zsh", "a"}, false},
		"a list without a shell":   {"x", []any{"perl", "-e"}, []string{"a"}, []string{"perl", "-e", "x", "a"}, false},
		"a list of one":            {"x", []any{"eval-it"}, nil, []string{"eval-it", "x"}, false},
		"several lines for a list": {"a\nb", []any{"sh", "-c"}, nil, []string{"sh", "-c", "a\nb"}, false},
	} {
		p, err := New(test.text, value(t, test.shell))
		if got := p.Argv("FILE", test.args); err != nil || !slices.Equal(got, test.want) || (p.InFile() == test.text) != test.file {
			t.Errorf("%s: %q, in a file %q, error %v", name, got, p.InFile(), err)
		}
	}
	p, err := New("ls", value(t, "pwsh"))
	if argv := p.Argv("", nil); err != nil || argv[0] != "pwsh" || !strings.Contains(argv[len(argv)-1], "\nls\n") {
		t.Errorf("pwsh: %q, error %v", argv, err)
	}
}

func TestShellsThatCannotRunAnythingAreRefused(t *testing.T) {
	for want, shell := range map[string]any{
		"is empty; write one of": "", "is empty; write one of bash": []any{}, "neither a word nor": 3.0, "number 1": []any{""}, "number 2": []any{"a", 1.0}, "number 3": []any{"a", "b", "\x00"},
		`"bahs", which is not a word for a shell; did you mean bash?`: "bahs", `"make"`: "cobol",
		"appended: [zsh, -c]": "zsh", "appended: [python3, -c]": "python3", "appended: [perl, -e]": "perl {0}", "appended: [php, -r]": "php", "appended: [/bin/bash, -c]": "/bin/bash",
		"appended: [bash, -euo, pipefail, -c]": "bash -euo pipefail {0}", "appended: [bash, -c]": "bash -c",
	} {
		_, err := New("x", value(t, shell))
		if fault, ok := errors.AsType[*ShellError](err); !ok || want != `"make"` && !strings.Contains(fault.Error(), want) {
			t.Errorf("%v: %v, want %s", shell, err, want)
		}
	}
}

func TestInterpretersThatNodesLookFor(t *testing.T) {
	for _, test := range []struct {
		text  string
		shell any
		want  string
	}{
		{"x", nil, ""}, {"x", "bash", "bash"}, {"x", "python", "python3"}, {"x", []any{"zsh", "-c"}, "zsh"}, {"x", []any{"env", "A=b", "ruby", "-e"}, "ruby"},
		{"#!/bin/bash\n", nil, "bash"}, {"#!/usr/bin/python3.11\n", nil, "python3.11"}, {"#!/opt/bin/python3\n", nil, ""}, {"#!bin/bash\n", nil, ""}, {"#!/bin/sh\n", nil, ""},
		{"#!/usr/bin/env python3\n", nil, "python3"}, {"#!/usr/bin/env -S uv run --script\n", nil, "uv"}, {"#!/usr/bin/env -S A=1 node --test\n", nil, "node"},
		{"#!/usr/bin/env -i bash\n", nil, ""}, {"#!/usr/bin/env -S PATH=/x bash\n", nil, ""}, {"#!/usr/bin/env mine\n", nil, ""}, {"#!/usr/bin/env\n", nil, ""}, {"#!/usr/bin/env python3 -u\n", nil, ""},
		{"#!/usr/bin/env ${{ input.x }}\n", nil, ""},
	} {
		p, err := New(test.text, value(t, test.shell))
		if got := strings.Join(p.Wanted(), " "); err != nil || got != test.want {
			t.Errorf("%q with %v needs %q, want %q, error %v", test.text, test.shell, got, test.want, err)
		}
	}
}

func TestValueForNamesOfInterpreters(t *testing.T) {
	for name, want := range map[string]string{
		"bash": "bash", "python3": "python", "nodejs": "node", "powershell": "pwsh", "zsh": "[zsh, -c]", "perl": "[perl, -e]", "php": "[php, -r]", "shell": "", "make": "",
	} {
		if got := ValueFor(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"dash", "fish", "ruby"} {
		var list []any
		for word := range strings.SplitSeq(strings.Trim(ValueFor(name), "[]"), ", ") {
			list = append(list, word)
		}
		if _, err := New("x", value(t, list)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
