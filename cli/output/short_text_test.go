package output

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"
)

func TestShortText(t *testing.T) {
	list, err := structpb.NewValue([]any{"a", 1.0, strings.Repeat("x", 100)})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := ShortText(list), `["a",1,"`+strings.Repeat("x", maxShortText-8)+"…"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := ShortText(structpb.NewStringValue("a\nb")); got != "a b" {
		t.Errorf("%q", got)
	}
}
