package stack

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"switchyard/cli/exit"
)

func TestGatewayCannotUseAnotherGatewayAsStore(t *testing.T) {
	_, err := (&Stack{}).openStore(t.Context(), Config{Store: "http://yard:7280", Control: true})
	var f *exit.Error
	if !errors.As(err, &f) || f.Code != exit.CodeUsage || !strings.Contains(err.Error(), "--store") {
		t.Errorf("error %v", err)
	}
}

func TestSecondWorkerOfANameIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a second worker waits for the first one to end
		cfg := Config{Store: "http://127.0.0.1:1", SpoolDir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)}
		shared, err := (&Stack{}).openStore(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer shared.Close()
		s, err := openNodeStore(t.Context(), shared, cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		_, err = openNodeStore(t.Context(), shared, cfg)
		if err == nil || !strings.Contains(err.Error(), "another worker of this name") {
			t.Errorf("the error is %v", err)
		}
	})
}
