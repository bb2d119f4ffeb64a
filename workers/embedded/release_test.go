package embedded

import (
	"fmt"
	"strings"
	"testing"

	"go.temporal.io/server/common/headers"
)

// TestReleasesEndWithTheEmbeddedServer fails after an upgrade of the module go.temporal.io/server until releases has its minor
// version, with the statements that change the schema.
func TestReleasesEndWithTheEmbeddedServer(t *testing.T) {
	t.Parallel()
	own := releases[len(releases)-1]
	if !strings.HasPrefix(headers.ServerVersion, own.String()+".") {
		t.Errorf("the server has the version %s, and the last release %s", headers.ServerVersion, own)
	}
	if schema, err := schemaVersion(); err != nil || schema != own.schema {
		t.Errorf("the server has the schema %d, and the last release %d, %v", schema, own.schema, err)
	}
	for i, r := range releases {
		if r.minor != uint32(firstMinor+i) {
			t.Errorf("release %d is Temporal %s, which leaves a gap", i, r)
		}
		if i > 0 && (len(r.steps) > 0) != (r.schema != releases[i-1].schema) {
			t.Errorf("Temporal %s has %d statements for its schema", r, len(r.steps))
		}
	}
}

func TestMarks(t *testing.T) {
	t.Parallel()
	// Databases from before there were marks hold only the schema, of Temporal 1.32.
	if got := parseMark(110001); got != (mark{32, 110001}) || got.number() != 110001 {
		t.Errorf("%+v", got)
	}
	for _, m := range []mark{{33, 110001}, {40, 1_050_012}, {firstMinor + 127, 1<<schemaBits - 1}} {
		if got := parseMark(m.number()); got != m || int32(m.number()) < 0 {
			t.Errorf("%+v became %+v", m, got)
		}
	}
}

func TestPlanUpgrade(t *testing.T) {
	t.Parallel()
	known := []release{
		{mark: mark{32, 1}}, {mark: mark{33, 2}, since: "v0.2.0"}, {mark: mark{34, 2}, since: "v0.3.0"}, {mark: mark{35, 3}, since: "v0.4.0"},
	}
	for _, test := range []struct {
		have  mark
		known int // number of releases
		want  string
	}{
		{mark{32, 1}, 1, "no"},
		{mark{32, 1}, 2, "yes"},
		{mark{33, 2}, 3, "yes"}, // with the same schema
		{mark{33, 2}, 2, "no"},
		{mark{32, 1}, 3, "was last used with Temporal 1.32, and this Switchyard has 1.34, which can upgrade only from 1.33: start Switchyard v0.2.0 (Temporal 1.33) with it once, stop that, and start this one"},
		{mark{32, 1}, 4, "was last used with Temporal 1.32, and this Switchyard has 1.35, which can upgrade only from 1.34: start Switchyard v0.2.0 (Temporal 1.33) with it once, stop that, and start this one"},
		{mark{33, 2}, 1, "was last used with Temporal 1.33, and this Switchyard has 1.32, which cannot read it: start a Switchyard with that version or the next one (`switchyard version` prints it)"},
		{mark{32, 7}, 1, "has the schema 7, which no release of Switchyard with Temporal 1.32 has made: use the Switchyard that made it, or another file"},
		{mark{32, 7}, 2, "has the schema 7, which no release of Switchyard with Temporal 1.32 has made: use the Switchyard that made it, or another file"},
	} {
		isNeeded, err := planUpgrade(test.have, known[:test.known])
		got := map[bool]string{true: "yes", false: "no"}[isNeeded]
		if err != nil {
			got = fmt.Sprint(err)
		}
		if got != test.want {
			t.Errorf("%+v with %d releases:\n%s, want\n%s", test.have, test.known, got, test.want)
		}
	}
}
