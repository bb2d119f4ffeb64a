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
	long := "#" + strings.Repeat(" ", MaxArgument)
	for name, test := range map[string]struct {
		text  string
		shell any
		want  []string // without the text, if that is the last argument
	}{
		"short enough":          {long[:MaxArgument], nil, []string{"sh", "-c"}},
		"too long":              {long, nil, []string{"sh", "-c", `. '/it'\''s'`, "sh", "a"}},
		"too long, lines":       {"a\n" + long, "sh", []string{"sh", "-ec", `. '/it'\''s'`, "sh", "a"}},
		"too long, bash":        {long, "bash", []string{"bash", "-eo", "pipefail", "-c", `. '/it'\''s'`, "bash", "a"}},
		"too long, a list":      {long, []any{"/bin/zsh", "-lc"}, []string{"/bin/zsh", "-lc", `. '/it'\''s'`, "zsh", "a"}},
		"too long, #! line":     {"#!/bin/awk -f\n" + long, nil, []string{"/bin/awk", "-f", "/it's", "a"}},
		"too long, python":      {long, "python", []string{"python3", "/it's", "a"}},
		"too long for a list":   {long, []any{"perl", "-e"}, []string{"perl", "-e"}},
		"too long for a list 2": {long, []any{"bash", "--rc"}, []string{"bash", "--rc"}},
	} {
		p, err := New(test.text, value(t, test.shell))
		got := p.Argv("/it's", []string{"a"})
		inFile := p.InFile() == test.text
		if err != nil || !slices.Equal(got[:len(test.want)], test.want) || inFile != (len(got) == len(test.want)) || !inFile && got[len(test.want)] != test.text {
			t.Errorf("%s: %.60q, in a file %v, error %v", name, got, inFile, err)
		}
	}
	p, err := New("ls", value(t, "pwsh"))
	if argv := p.Argv("", nil); err != nil || argv[0] != "pwsh" || !strings.Contains(argv[len(argv)-1], "\nls\n") {
		t.Errorf("pwsh: %q, error %v", argv, err)
	}
}

func TestTextsThatLinuxRefusesAreLong(t *testing.T) {
	fits := strings.Repeat("x", MaxArgument)
	long := fits + "x"
	spec := value(t, map[string]any{
		"command": []any{"bash", "-c", long, fits}, "args": []any{long}, "entrypoint": long, "image": long, "workingDirectory": long,
		"env": []any{map[string]any{"name": "FITS", "value": fits[:MaxArgument-5]}, map[string]any{"name": "LONG", "value": fits[:MaxArgument-4]}},
		"template": map[string]any{"metadata": map[string]any{"annotations": map[string]any{"a": long}}, "spec": map[string]any{"initContainers": []any{
			map[string]any{"args": []any{long}, "lifecycle": map[string]any{"preStop": map[string]any{"exec": map[string]any{"command": []any{long}}}}},
		}}},
		"mcpServers": map[string]any{"jira": map[string]any{"command": []any{"x", long}, "env": map[string]any{"TOKEN": long}}},
		"prompt":     long,
	}).GetStructValue()
	var got []string
	for _, text := range LongTexts(spec, map[string]string{"A": fits[:MaxArgument-2], "BB": fits[:MaxArgument-2]}) {
		if text.Text == "" || strings.Contains(text.Error(), "xxxx") {
			t.Errorf("%v: text of %d bytes, error %.200s", text.Path, len(text.Text), text)
		}
		place, fault, _ := strings.Cut(text.Error(), " ")
		fault, _, _ = strings.Cut(fault, ";")
		got = append(got, place+" "+fault)
	}
	want := []string{
		"spec.args[0] has 131072 bytes", "spec.command[2] has 131072 bytes", "spec.env[1].value has 131067 bytes",
		"spec.mcpServers.jira.command[1] has 131072 bytes", "spec.mcpServers.jira.env.TOKEN has 131072 bytes",
		"spec.template.spec.initContainers[0].args[0] has 131072 bytes", "spec.template.spec.initContainers[0].lifecycle.preStop.exec.command[0] has 131072 bytes",
		"env.BB has 131069 bytes",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	for want, shell := range map[string]any{"": nil, "perl takes it as an argument, in which Linux allows at most 131071; begin it with a #! line": []any{"perl", "-e"}, "pwsh takes it": "pwsh"} {
		spec := &structpb.Struct{Fields: map[string]*structpb.Value{"command": structpb.NewStringValue(long), "shell": value(t, shell)}}
		if texts := LongTexts(spec, nil); (len(texts) > 0) != (want != "") || want != "" && !strings.Contains(texts[0].Error(), want) {
			t.Errorf("a text for %v: %d faults, want %q", shell, len(texts), want)
		}
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
