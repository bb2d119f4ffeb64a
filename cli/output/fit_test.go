package output

import (
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

func TestFit(t *testing.T) {
	letters := [][]string{
		{"RUN", "TASK", "TYPE", "ATTEMPTS", "NODE", "SINCE", "ERROR"},
		{"build-and-deploy-everything-4g5h6jkm", "transform-customers[6]", "shell", "4", "worker-1", "2026-03-14 15:09:26", "exit code 2: no such file or directory: /srv/customers"},
		{"a-1", "b", "shell", "1", "", "2026-03-14 15:09:26", "timeout"},
	}
	nodes := [][]string{
		{"NAME", "STATE", "RUNNING", "LABELS", "NOTE"},
		{"gpu-1", "active", "1/8", "gpu,fast,cheap", ""},
	}
	for _, test := range []struct {
		rows   [][]string
		width  int
		header string
		row    string
	}{
		{letters, 0, "RUN TASK TYPE ATTEMPTS NODE SINCE ERROR", letters[1][6]},
		{letters, 200, "RUN TASK TYPE ATTEMPTS NODE SINCE ERROR", letters[1][6]},
		{letters, 120, "RUN TASK TYPE ATTEMPTS NODE SINCE ERROR", "exit code 2: no such fi"},
		{letters, 80, "RUN TASK TYPE ERROR", "build-and-d…ng-4g5h6jkm  transform-customers[6]"},
		{letters, 40, "RUN TASK ERROR", "transfor…[6]"},
		{letters, 30, "RUN TASK ERROR", "tran…[6]"},
		{nodes, 40, "NAME STATE RUNNING LABELS", "gpu,fast,cheap"},
	} {
		var out strings.Builder
		if err := WriteTable(&out, Fit(test.rows, test.width, 2)); err != nil {
			t.Fatal(err)
		}
		lines := slices.Collect(strings.Lines(out.String()))
		for _, line := range lines {
			if test.width > 0 && ansi.StringWidth(strings.TrimSuffix(line, "\n")) > test.width {
				t.Errorf("%d columns: %q is too wide", test.width, line)
			}
		}
		if header := strings.Join(strings.Fields(lines[0]), " "); header != test.header || !strings.Contains(lines[1], test.row) {
			t.Errorf("%d columns: no %q, %q in\n%s", test.width, test.header, test.row, out.String())
		}
	}
	if got := Fit(letters, 5, 2); len(got) != len(letters) || len(got[0]) != 2 {
		t.Errorf("5 columns: %q", got)
	}
	if got := Fit(nil, 5, 2); got != nil {
		t.Errorf("no rows: %q", got)
	}
}
