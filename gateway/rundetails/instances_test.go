package rundetails

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"
)

func TestShortItemFitsOneLine(t *testing.T) {
	t.Parallel()
	for item, want := range map[string]string{
		"a.png": "a.png", "two\nlines\tand\x1b[2J": "two lines and [2J", strings.Repeat("é", 81): strings.Repeat("é", 77) + "...", "": "",
	} {
		if got := shortItem(structpb.NewStringValue(item)); got != want {
			t.Errorf("%q is shown as %q", item, got)
		}
	}
}
