package cli

import (
	"strings"
	"testing"

	"switchyard/cli/exit"
	v1 "switchyard/proto/switchyard/v1"
)

func TestSecretsSetReadsNoValueFromItsArguments(t *testing.T) {
	f := fake(t)
	script(f, &v1.SetSecretResponse{Secret: &v1.Secret{Name: "db.password", Version: 1, SetAt: after(0), SetBy: "ann", KeyId: "5f3a91c2"}})
	file := write(t, "value", "from a file\n")
	for i, test := range []struct {
		stdin string
		args  []string
		want  string
		role  string
	}{
		{"from stdin\n", nil, "from stdin", v1.RoleOperator},
		{"two\nlines\r\n", []string{"--role", "user"}, "two\nlines", v1.RoleUser},
		{"", []string{"--from-file", file}, "from a file\n", v1.RoleOperator},
	} {
		got := runWith(t, nil, test.stdin, append([]string{"secrets", "set", "db.password", "--gateway", f.url}, test.args...)...)
		if got.code != 0 || strings.Contains(got.stdout+got.stderr, test.want) || !strings.Contains(got.stderr, "secret db.password is set") {
			t.Errorf("%v: %+v", test.args, got)
		}
		sent := requests[*v1.SetSecretRequest](f)[i]
		if sent.GetName() != "db.password" || string(sent.GetValue()) != test.want || sent.GetRole() != test.role {
			t.Errorf("%v: sent %v", test.args, sent)
		}
	}
}

func TestSecretsSetRefusesAValueAsArgument(t *testing.T) {
	f := fake(t)
	script(f, &v1.SetSecretResponse{})
	for _, args := range [][]string{{"db", "hunter2"}, {"db=hunter2"}} {
		got := runWith(t, nil, "x", append([]string{"secrets", "set", "--gateway", f.url}, args...)...)
		if got.code != exit.CodeUsage || strings.Contains(got.stdout+got.stderr, "hunter2") || !strings.Contains(got.stderr, "a value cannot be an argument") {
			t.Errorf("%v: %+v", args, got)
		}
	}
	runWith(t, nil, "\n", "secrets", "set", "db", "--gateway", f.url).ends(t, exit.CodeUsage, "is empty")
	if len(f.asked) != 0 {
		t.Errorf("asked %v", f.asked)
	}
}

func TestSecretsListAndDelete(t *testing.T) {
	f := fake(t)
	script(f, &v1.ListSecretsResponse{Items: []*v1.Secret{
		{Name: "db.password", Role: v1.RoleOperator, Version: 2, SetAt: after(5), SetBy: "ann", KeyId: "5f3a91c2"},
		{Name: "token", Role: v1.RoleUser, Version: 1, SetAt: after(6), KeyId: "5f3a91c2"},
	}})
	showsGolden(t, "secrets-list", []string{"text", "json"}, "secrets", "list", "--gateway", f.url)
	script(f, &v1.DeleteSecretResponse{Secret: &v1.Secret{Name: "token", Role: v1.RoleUser, Version: 3}})
	got := run(t, "secrets", "delete", "token", "--gateway", f.url, "-o", "json")
	if got.code != 0 || !strings.Contains(got.stdout, `"name": "token"`) || requests[*v1.DeleteSecretRequest](f)[0].GetName() != "token" {
		t.Errorf("%+v, asked %v", got, f.asked)
	}
}
