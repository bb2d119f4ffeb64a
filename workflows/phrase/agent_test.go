package phrase

import (
	"math"
	"testing"
	"time"
)

func TestAgentUsageIsPhrased(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		Turn(3, 2140*time.Millisecond, 48_200, 310, 0.02, ""):   "turn 3 took 2.1 s, 48,200 tokens in, 310 out, $0.02",
		Turn(1, 0, 0, 0, 0, "the provider is overloaded"):       "turn 1 took 0.0 s: the provider is overloaded",
		ToolCall("shell", 3, 400*time.Millisecond, ""):          "shell in turn 3 took 0.4 s",
		ToolCall("files", 3, -time.Second, "no such file"):      "files in turn 3 took 0.0 s: no such file",
		Dollars(0) + " " + Dollars(0.00001) + " " + Dollars(12): "$0.00 under $0.0001 $12.00",
		Dollars(0.0042) + " " + Dollars(0.0099999):              "$0.0042 $0.0100",
		Number(0) + " " + Number(999) + " " + Number(-1000):     "0 999 -1,000",
		Number(math.MaxInt64):                                   "9,223,372,036,854,775,807",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
