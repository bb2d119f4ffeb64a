package eventlog

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

// The data of an event stays small, however long its texts and lists are.
func TestEventDataIsBounded(t *testing.T) {
	t.Parallel()
	l := newTestLog()
	long := strings.Repeat("é", 10_000)
	runs := make([]string, 1000)
	for i := range runs {
		runs[i] = fmt.Sprintf("%s-%d", long, i)
	}
	l.Add(time.Unix(0, 0), v1.EventQueued, WholeRun, "", 0, 0, "", KeyError.Of(long), KeyWaitsFor.Of(runs), KeyGPUs.Of(make([]int32, 1000)))
	data := l.Unstored("", 0).GetEvents()[0].GetData().AsMap()
	waits := data[string(KeyWaitsFor)].([]any)
	if len(data[string(KeyError)].(string)) != maxDetailBytes || len(waits) != maxDataItems || len(waits[0].(string)) != maxDetailBytes || len(data[string(KeyGPUs)].([]any)) != maxDataItems {
		t.Errorf("%v", data)
	}
}
