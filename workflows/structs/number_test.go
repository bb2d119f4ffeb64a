package structs

import "testing"

func TestNumber(t *testing.T) {
	t.Parallel()
	for number, want := range map[float64]string{
		0: "0", 1e6: "1000000", 1000000.5: "1000000.5", -123456789012: "-123456789012", 9007199254740992: "9007199254740992", 0.1: "0.1", 0.00001: "0.00001", 1e300: "1e+300",
	} {
		if got := Number(number); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
