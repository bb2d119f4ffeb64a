package podhelper

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	ServeIfAsked()
	os.Exit(m.Run())
}
