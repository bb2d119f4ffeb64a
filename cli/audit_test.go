package cli

import (
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/cli/exit"
	"switchyard/cli/output"
	"switchyard/dev/golden"
	v1 "switchyard/proto/switchyard/v1"
)

func TestAuditListsWhoDidWhat(t *testing.T) {
	f := fake(t)
	entries := []*v1.AuditEntry{
		{Id: "5f3a91c2-4", At: after(9), By: "gpu-1", Role: v1.RoleNode, Kind: "token", Token: "c4d5", Action: "BlobService/PutBlob", Objects: map[string]string{"run": "ci-3f9a2c7b1d", "value": "runs/ci-3f9a2c7b1d/0/result/a"}, From: "10.0.0.7", Result: "permission_denied", Reason: "node gpu-1 was given no task of run ci-3f9a2c7b1d"},
		{Id: "5f3a91c2-3", At: after(7), Action: "GET /v1/runs\x1b[2J\nforged", From: "2001:db8::17", ForwardedFor: "192.0.2.1\x1b[2J", Result: "unauthenticated", Reason: "the token is not known", Omitted: 95},
		{Id: "5f3a91c2-2", At: after(5), By: "ann", Role: v1.RoleUser, Kind: "token", Token: "a2b3", Action: "RunService/CancelRun", Objects: map[string]string{"run": "ci-3f9a2c7b1d"}, From: "10.0.0.9", Result: "ok"},
		{Id: "5f3a91c2-1", At: after(4), By: "bob (unverified)", Role: v1.RoleAdmin, Kind: "none", Action: "WorkflowService/PutWorkflow", Objects: map[string]string{"workflow": "nightly"}, From: "127.0.0.1", Result: "invalid_argument"},
	}
	for _, format := range []string{"text", "json"} {
		script(f, &v1.ListAuditEntriesResponse{Items: entries[:1], NextPageToken: "x"}, &v1.ListAuditEntriesResponse{Items: entries[1:]})
		got := run(t, "audit", "--gateway", f.url, "-o", format)
		if got.code != 0 || strings.Contains(got.stdout, "\x1b") {
			t.Errorf("%+v", got)
		}
		golden.Check(t, "testdata/audit-"+format+".golden", got.stdout)
	}
	var narrow strings.Builder
	must(t, output.WriteTable(&narrow, output.Fit(auditRows(&system{zone: time.UTC}, entries), 100, auditKeep)))
	golden.Check(t, "testdata/audit-narrow.golden", narrow.String())
}

func TestAuditSendsItsFlagsAsFilters(t *testing.T) {
	f := fake(t)
	script(f, &v1.ListAuditEntriesResponse{Items: []*v1.AuditEntry{{By: "ann"}}, NextPageToken: "x"})
	got := run(t, "audit", "--gateway", f.url, "--since", "2026-03-14T15:00:00Z", "--until", "2026-03-14T16:00:00Z", "--who", "ann", "--what", "SubmitRun",
		"--object", "ci-1", "--result", "refused", "--limit", "2", "-o", "jsonl")
	if got.code != 0 || strings.Count(got.stdout, "\n") != 2 {
		t.Errorf("%+v", got)
	}
	sizes := []int32{}
	for _, asked := range requests[*v1.ListAuditEntriesRequest](f) {
		sizes = append(sizes, asked.GetPageSize())
		if asked.GetUntil().AsTime().Sub(asked.GetSince().AsTime()) != time.Hour || asked.GetWho() != "ann" || asked.GetWhat() != "SubmitRun" || asked.GetObject() != "ci-1" || asked.GetResult() != "refused" {
			t.Errorf("asked for %v", asked)
		}
	}
	if !slices.Equal(sizes, []int32{2, 1}) {
		t.Errorf("asked for pages of %v", sizes)
	}
	for _, args := range [][]string{{"--since", "yesterday"}, {"--until", "soon"}, {"--limit", "1001"}, {"ann"}} {
		run(t, append([]string{"audit", "--gateway", f.url}, args...)...).ends(t, exit.CodeUsage, "")
	}
}
