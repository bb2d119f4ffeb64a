package main

import "testing"

func TestGreet(t *testing.T) {
	for _, test := range []struct {
		names []string
		want  string
	}{
		{nil, "Hello, world!"},
		{[]string{"Ada"}, "Hello, Ada!"},
		{[]string{"Ada", "Alan"}, "Hello, Ada and Alan!"},
	} {
		if got := greet(test.names); got != test.want {
			t.Errorf("greet(%q) = %q, want %q", test.names, got, test.want)
		}
	}
}
