package e2e

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"switchyard/dev/processes"
	"switchyard/docs/site"
	"switchyard/workflows/names"
)

// gatewayOfDocuments is the address of the gateway in documents.
const gatewayOfDocuments = "127.0.0.1:7280"

// waitToDecide runs the program. A reader approves a task or a run once it waits; a script would come too early.
const waitToDecide = `case "$1 $2" in
"runs approve" | "runs reject")
	tries=0
	until "$program" "$@" || [ $tries -eq 300 ]; do
		tries=$((tries + 1))
		sleep 0.2
	done
	[ $tries -lt 300 ] ;;
*) exec "$program" "$@" ;;
esac
`

// needsTools reports whether a script needs programs that a test machine may lack.
func needsTools(script string) bool {
	return strings.Contains(script, "curl ") || strings.Contains(script, "openssl ")
}

// TestDocuments runs the commands of the pages that need no tools.
func TestDocuments(t *testing.T) {
	t.Parallel()
	if ran := runDocuments(t, func(script string) bool { return !needsTools(script) }); ran < 60 {
		t.Errorf("the pages run only %d commands", ran)
	}
}

// runDocuments runs the commands of each page of the documentation whose script is accepted, as a reader would who follows the
// page: those of a page are one script, which ends at the first command that fails. It runs in a folder with dev/examples and with
// the files that the page shows, and the shared stack is the fleet. The result is the number of commands.
func runDocuments(t *testing.T, accepts func(script string) bool) int {
	t.Helper()
	s := shared(t)
	bin := t.TempDir()
	program := "#!/bin/sh\nprogram=" + binary + "\n" + waitToDecide
	if err := os.WriteFile(filepath.Join(bin, "switchyard"), []byte(program), 0o755); err != nil {
		t.Fatal(err)
	}
	ran := 0
	pages, _, err := site.Read(os.DirFS(filepath.Join(repository, "docs")))
	if err != nil {
		t.Fatal(err)
	}
	for name, page := range pages {
		var script strings.Builder
		for _, f := range page.Fences {
			if f.Language == "sh" && f.Info == "" {
				script.WriteString(f.Text)
			}
		}
		if script.Len() == 0 || !accepts(script.String()) {
			continue
		}
		ran += strings.Count(script.String(), "switchyard ") + strings.Count(script.String(), "curl ")
		t.Run(strings.TrimSuffix(name, ".md"), func(t *testing.T) {
			t.Parallel()
			runPage(t, s, bin, page, script.String())
		})
	}
	return ran
}

// readerGateway returns the URL of the gateway for the reader of a page. Each page has a reader of its own, so that the run "last"
// is the one that the page has submitted.
func readerGateway(t *testing.T, s *processes.Stack, reader string) string {
	t.Helper()
	target, err := url.Parse(s.Gateway)
	if err != nil {
		t.Fatal(err)
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Set(names.ActorHeader, reader)
		},
		Transport:     &http.Transport{},
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
	})
	server.Config.Protocols = protocols
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

// runPage runs the script of a page.
func runPage(t *testing.T, s *processes.Stack, bin string, page *site.Page, script string) {
	gateway := readerGateway(t, s, page.Path)
	address := strings.TrimPrefix(gateway, "http://")
	dir, home := t.TempDir(), t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "dev/examples"), os.DirFS(filepath.Join(repository, "dev/examples"))); err != nil {
		t.Fatal(err)
	}
	for _, f := range page.Fences {
		if f.File() == "" {
			continue
		}
		file := filepath.Join(dir, f.File())
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(f.Text, gatewayOfDocuments, address)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// A status of 400 or more ends the script.
	if err := os.WriteFile(filepath.Join(home, ".curlrc"), []byte("fail-with-body\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), processes.Limit)
	defer cancel()
	shell := exec.CommandContext(ctx, "sh", "-euxc", strings.ReplaceAll(script, gatewayOfDocuments, address))
	shell.Dir = dir
	shell.Env = append(processes.CleanEnv(), "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+home, "SWITCHYARD_GATEWAY="+gateway, "TEMPORAL_ADDRESS="+s.Temporal)
	// What a page starts in the background ends with its script.
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	shell.Cancel = func() error { return syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) }
	output, err := os.Create(filepath.Join(home, "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	shell.Stdout, shell.Stderr = output, output
	err = shell.Run()
	if shell.Process != nil {
		_ = syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) // if anything of the group is left
	}
	if err != nil {
		text, _ := os.ReadFile(output.Name())
		t.Errorf("the commands of the page: %v\n%s", err, text)
	}
}
