package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// TestImageHasEveryLinuxPlatform checks that the file is a layout of OCI with one index of all platforms, and also what older
// versions of Docker load, and that the images hold what a program needs.
func TestImageHasEveryLinuxPlatform(t *testing.T) {
	r := made(t)
	path := filepath.Join(r.output, "switchyard_0.2.0-rc.1_oci.tar")
	folder := t.TempDir()
	if out, err := exec.Command("tar", "-C", folder, "-xf", path).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	top, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(top); err != nil {
		t.Error(err)
	}
	manifest, err := top.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("%v, %v", manifest, err)
	}
	index, err := top.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	platforms, err := index.IndexManifest()
	if err != nil || len(platforms.Manifests) != 2 {
		t.Fatalf("%v, %v", platforms, err)
	}
	for _, b := range r.binaries[:2] {
		i := slices.IndexFunc(platforms.Manifests, func(d v1.Descriptor) bool { return d.Platform.String() == "linux/"+b.architecture })
		if i < 0 {
			t.Fatalf("no image for %s", b.architecture)
		}
		image, err := index.Image(platforms.Manifests[i].Digest)
		if err != nil {
			t.Fatal(err)
		}
		r.checkImage(t, image, b)
		tag, err := name.NewTag("switchyard:0.2.0-rc.1-" + b.architecture)
		if err != nil {
			t.Fatal(err)
		}
		loaded, err := tarball.ImageFromPath(path, &tag)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := configName(t, loaded), configName(t, image); got != want {
			t.Errorf("Docker loads the image %s for %s, want %s", got, b.architecture, want)
		}
	}
}

func configName(t *testing.T, image v1.Image) v1.Hash {
	t.Helper()
	digest, err := image.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

// checkImage checks the settings and the files of an image.
func (r release) checkImage(t *testing.T, image v1.Image, b binary) {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if c := config.Config; c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/usr/bin/switchyard"}) || c.Labels["org.opencontainers.image.revision"] != r.commit {
		t.Errorf("the settings are %+v", c)
	}
	if config.Architecture != b.architecture || config.OS != "linux" || !config.Created.Equal(r.time) {
		t.Errorf("the image is for %s/%s and of %s", config.OS, config.Architecture, config.Created)
	}
	got := map[string]string{}
	var certificates []byte
	files := tar.NewReader(mutate.Extract(image))
	for {
		h, err := files.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		got[h.Name] = fmt.Sprintf("%o %d:%d", h.Mode, h.Uid, h.Gid)
		switch {
		case h.Name == "usr/bin/switchyard" && !bytes.Equal(text, readFile(t, b.path)):
			t.Errorf("the binary of %s is another one", b.architecture)
		case h.Name == "etc/passwd" && !strings.Contains(string(text), "\nswitchyard:x:65532:65532:"):
			t.Errorf("the users are\n%s", text)
		case strings.HasSuffix(h.Name, ".crt"):
			certificates = text
		}
	}
	want := map[string]string{
		"etc/passwd": "644 0:0", "etc/group": "644 0:0", "etc/ssl/certs/ca-certificates.crt": "644 0:0", "tmp": "1777 0:0",
		"var/lib/switchyard": "700 65532:65532", "usr/bin/switchyard": "755 0:0",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the files are %v, want %v", got, want)
	}
	if pool := x509.NewCertPool(); !pool.AppendCertsFromPEM(certificates) || strings.Count(string(certificates), "BEGIN") < 100 {
		t.Error("there are too few certificates of authorities")
	}
}
