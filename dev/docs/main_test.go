package main

import (
	"os"
	"testing"
)

func TestSiteNeedsAFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := write(""); err == nil {
		t.Error("the site is written to a folder without a name")
	}
	if files, err := os.ReadDir("."); err != nil || len(files) > 0 {
		t.Errorf("the working directory has %v, %v", files, err)
	}
}
