package cli

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"switchyard/cli/client"
	"switchyard/cli/exit"
)

func TestWorkerStoresItsValuesWithTheGateway(t *testing.T) {
	for _, test := range []struct{ named, gateway, want string }{
		{"", "", client.DefaultURL},
		{"", "http://yard:7280", "http://yard:7280"},
		{"", "yard:7280", "http://yard:7280"},
		{"", "https://yard", "https://yard"},
		{"", "yard:7280,http://yard-2:7280/", "http://yard:7280,http://yard-2:7280"},
		{"s3://bucket", "http://yard:7280", "s3://bucket"},
		{"/srv/store", "", "/srv/store"},
	} {
		if got := workerStore(test.named, test.gateway); got != test.want {
			t.Errorf("--store %q with the gateway %q: %q, want %q", test.named, test.gateway, got, test.want)
		}
	}
}

func TestEachNodeHasItsOwnSpool(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", "/state")
	spoolOf := func(named, store, node string) string {
		t.Helper()
		dir, err := spoolOr(named, store, node)
		if err != nil {
			t.Fatal(err)
		}
		return dir
	}
	if got := spoolOf("/spool", client.DefaultURL, "a"); got != "/spool" {
		t.Errorf("--spool-dir /spool: %q", got)
	}
	seen := map[string]string{}
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	one := spoolOf("", "http://yard:7280", "a")
	if err := os.MkdirAll(one, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, gateways := range []string{"http://yard:7280,http://yard-2:7280", "http://yard-2:7280,http://yard:7280"} {
		if got := spoolOf("", gateways, "a"); got != one {
			t.Errorf("the spool of %s is %s, want %s, which has values", gateways, got, one)
		}
	}
	t.Setenv("XDG_STATE_HOME", "/state")
	for _, node := range []string{"a", "b"} {
		for _, store := range []string{"http://yard:7280", "http://yard:7281", "https://other/../../yard", "/srv/store", "/mnt/store", "s3://bucket", "s3://bucket?prefix=a/", "s3://bucket?prefix=a_"} {
			got := spoolOf("", store, node)
			if got != spoolOf("", store, node) || seen[got] != "" || !strings.Contains(got, "/state/switchyard/spool/"+node+"/at-") || strings.Contains(got, "/../") {
				t.Errorf("node %s with store %s spools in %q; %s does too", node, store, got, seen[got])
			}
			seen[got] = node + " " + store
		}
	}
}

func TestRetentionIsAboveZero(t *testing.T) {
	if d, err := checkRetention(time.Hour); err != nil || d != time.Hour {
		t.Errorf("1h: %s, %v", d, err)
	}
	for _, d := range []time.Duration{0, -time.Hour} {
		var f *exit.Error
		if _, err := checkRetention(d); !errors.As(err, &f) || f.Code != exit.CodeUsage {
			t.Errorf("%s: %v", d, err)
		}
	}
}

func TestQuotaIsNotNegative(t *testing.T) {
	for gb, want := range map[int64]int64{0: 0, 10: 10 << 30} {
		if got, err := checkQuota("log-quota-gb", gb); err != nil || got != want {
			t.Errorf("%d GiB: %d, %v", gb, got, err)
		}
	}
	for _, gb := range []int64{-1, 1 << 33} {
		var f *exit.Error
		if _, err := checkQuota("artifact-quota-gb", gb); !errors.As(err, &f) || f.Code != exit.CodeUsage {
			t.Errorf("%d GiB: %v", gb, err)
		}
	}
}
