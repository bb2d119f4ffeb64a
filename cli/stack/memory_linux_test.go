package stack

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestReleasedMemoryIsNotResident checks that the process continues and uses less memory after its pages are released.
func TestReleasedMemoryIsNotResident(t *testing.T) {
	resident := func() int {
		t.Helper()
		text, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if value, ok := strings.CutPrefix(line, "RssFile:"); ok {
				kb, err := strconv.Atoi(strings.Fields(value)[0])
				if err != nil {
					t.Fatal(err)
				}
				return kb
			}
		}
		t.Fatal("no figure")
		return 0
	}
	before := resident()
	if err := releaseMemory(); err != nil {
		t.Fatal(err)
	}
	if after := resident(); after >= before {
		t.Errorf("%d kB of files before, %d kB after", before, after)
	}
}
