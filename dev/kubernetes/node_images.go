package main

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// Images that every real node has, so that no registry is needed.
const (
	busyboxImage = "busybox:local"
	pauseImage   = "pause:local"
)

// imageConfig holds the fields of an image's configuration that a runtime reads.
type imageConfig struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
	Config       struct {
		Env []string
		Cmd []string
	} `json:"config"`
	RootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
}

// manifestEntry is an image of a docker-archive, which `docker save` writes and containerd imports.
type manifestEntry struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// writeBusyboxImages writes an archive with the images of every node. Both have a single layer with a static busybox.
func writeBusyboxImages(archive, busybox string) error {
	path, err := exec.LookPath(busybox)
	if err != nil {
		return err
	}
	applets, err := exec.CommandContext(context.Background(), path, "--list").Output()
	if err != nil {
		return err
	}
	binary, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	layer, err := busyboxLayer(binary, strings.Fields(string(applets)))
	if err != nil {
		return err
	}
	const layerName = "layer.tar"
	contents := []tarEntry{{tar.Header{Name: layerName, Mode: 0o644}, layer}}
	var manifest []manifestEntry
	for _, image := range []struct {
		tag     string
		command []string
	}{
		{busyboxImage, []string{"/bin/sh"}},
		{pauseImage, []string{"/bin/sleep", "2147483647"}},
	} {
		config := imageConfig{Architecture: runtime.GOARCH, OS: "linux"}
		config.Config.Env = []string{"PATH=/bin"}
		config.Config.Cmd = image.command
		config.RootFS.Type = "layers"
		config.RootFS.DiffIDs = []string{"sha256:" + digest(layer)}
		text, err := json.Marshal(config)
		if err != nil {
			return err
		}
		name := digest(text) + ".json"
		contents = append(contents, tarEntry{tar.Header{Name: name, Mode: 0o644}, text})
		manifest = append(manifest, manifestEntry{Config: name, RepoTags: []string{image.tag}, Layers: []string{layerName}})
	}
	text, err := json.Marshal(manifest)
	if err != nil {
		return err
	}
	contents = append(contents, tarEntry{tar.Header{Name: "manifest.json", Mode: 0o644}, text})
	out, err := tarOf(contents)
	if err != nil {
		return err
	}
	return os.WriteFile(archive, out, 0o600)
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// busyboxLayer returns a file system with busybox, a link for each applet, and the files that programs expect of a
// system.
func busyboxLayer(binary []byte, applets []string) ([]byte, error) {
	entries := []tarEntry{
		{tar.Header{Name: "bin/", Typeflag: tar.TypeDir, Mode: 0o755}, nil},
		{tar.Header{Name: "bin/busybox", Mode: 0o755}, binary},
		{tar.Header{Name: "etc/", Typeflag: tar.TypeDir, Mode: 0o755}, nil},
		{tar.Header{Name: "etc/passwd", Mode: 0o644}, []byte("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n")},
		{tar.Header{Name: "etc/group", Mode: 0o644}, []byte("root:x:0:\nnogroup:x:65534:\n")},
		{tar.Header{Name: "root/", Typeflag: tar.TypeDir, Mode: 0o700}, nil},
		{tar.Header{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777}, nil},
	}
	for _, applet := range applets {
		if applet != "busybox" {
			entries = append(entries, tarEntry{tar.Header{Name: "bin/" + applet, Typeflag: tar.TypeSymlink, Linkname: "busybox", Mode: 0o777}, nil})
		}
	}
	return tarOf(entries)
}

type tarEntry struct {
	header tar.Header
	data   []byte
}

func tarOf(entries []tarEntry) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, entry := range entries {
		entry.header.Size = int64(len(entry.data))
		err := w.WriteHeader(&entry.header)
		if err == nil {
			_, err = w.Write(entry.data)
		}
		if err != nil {
			return nil, errors.Join(err, w.Close())
		}
	}
	return out.Bytes(), w.Close()
}
