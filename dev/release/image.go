package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	// imageUser is the user of the image, and imageState the folder that this user owns: its home, in which the state of nodes and
	// the store of `switchyard dev` are.
	imageUser  = 65532
	imageState = "/var/lib/switchyard"
	// program is the path of the binary in the image.
	program = "/usr/bin/switchyard"
)

// images writes the container image of all Linux platforms and returns its name, or nothing if there is no such platform.
func (r release) images() ([]string, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	var images []v1.Image
	var tags []string
	for _, b := range r.binaries {
		if b.system != "linux" {
			continue
		}
		image, err := r.platformImage(b)
		if err != nil {
			return nil, fmt.Errorf("make the image of %s/%s: %w", b.system, b.architecture, err)
		}
		images, tags = append(images, image), append(tags, "switchyard:"+r.version+"-"+b.architecture)
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: b.system, Architecture: b.architecture}},
		})
	}
	if len(images) == 0 {
		return nil, nil
	}
	folder, err := os.MkdirTemp("", "switchyard-image-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	// The file has one entry, with all platforms. Engines read its name from the second annotation.
	top := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{
		Add: index, Descriptor: v1.Descriptor{Annotations: map[string]string{
			"org.opencontainers.image.ref.name": r.version, "io.containerd.image.name": "docker.io/library/switchyard:" + r.version,
		}},
	})
	if _, err := layout.Write(folder, top); err != nil {
		return nil, err
	}
	if err := writeDockerManifest(filepath.Join(folder, "manifest.json"), images, tags); err != nil {
		return nil, err
	}
	name := r.name(".tar", "oci")
	return []string{name}, r.archiveFolder(folder, filepath.Join(r.output, name))
}

// platformImage returns the image of a platform.
func (r release) platformImage(b binary) (v1.Image, error) {
	base, err := r.layer(baseItems())
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(b.path)
	if err != nil {
		return nil, err
	}
	binary, err := r.layer([]imageItem{{path: program, mode: 0o755, text: text}})
	if err != nil {
		return nil, err
	}
	image, err := mutate.Append(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON),
		mutate.Addendum{Layer: base, History: v1.History{CreatedBy: "dev/release: users and certificates"}},
		mutate.Addendum{Layer: binary, History: v1.History{CreatedBy: "dev/release: " + program}})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = b.system, b.architecture, v1.Time{Time: r.time}
	for i := range config.History {
		config.History[i].Created = config.Created
	}
	config.Config = v1.Config{
		Entrypoint: []string{program}, WorkingDir: imageState, User: fmt.Sprintf("%d:%[1]d", imageUser),
		Env:          []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + imageState},
		ExposedPorts: map[string]struct{}{"7280/tcp": {}},
		Labels: map[string]string{
			"org.opencontainers.image.title":       "switchyard",
			"org.opencontainers.image.description": summary,
			"org.opencontainers.image.licenses":    license,
			"org.opencontainers.image.version":     r.version,
			"org.opencontainers.image.revision":    r.commit,
			"org.opencontainers.image.created":     r.time.Format("2006-01-02T15:04:05Z"),
		},
	}
	return mutate.ConfigFile(image, config)
}

// imageItem is a file of the image, or a folder if its path ends in a slash.
type imageItem struct {
	path  string
	mode  int64
	owner int
	text  []byte
}

// baseItems returns what the image has besides the binary.
func baseItems() []imageItem {
	passwd := fmt.Sprintf("root:x:0:0:root:/root:/sbin/nologin\nswitchyard:x:%d:%[1]d:Switchyard:%s:/sbin/nologin\n", imageUser, imageState)
	group := fmt.Sprintf("root:x:0:\nswitchyard:x:%d:\n", imageUser)
	return []imageItem{
		{path: "/etc/passwd", mode: 0o644, text: []byte(passwd)},
		{path: "/etc/group", mode: 0o644, text: []byte(group)},
		{path: "/etc/ssl/certs/ca-certificates.crt", mode: 0o644, text: authorities()},
		{path: "/tmp/", mode: 0o1777},
		{path: imageState + "/", mode: 0o700, owner: imageUser},
	}
}

// authorities returns the certificates that Mozilla trusts, as the module golang.org/x/crypto/x509roots/fallback has them. Those
// that Mozilla trusts only in part are left out, because a file of certificates cannot say so.
func authorities() []byte {
	var text []byte
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})...)
		}
	}
	return text
}

// layer returns a layer of an image.
func (r release) layer(items []imageItem) (v1.Layer, error) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, it := range items {
		header := &tar.Header{Name: it.path[1:], Mode: it.mode, Size: int64(len(it.text)), Uid: it.owner, Gid: it.owner, ModTime: r.time}
		header.Typeflag = tar.TypeReg
		if header.Name[len(header.Name)-1] == '/' {
			header.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(it.text); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil },
		tarball.WithCompressedCaching, tarball.WithMediaType(types.OCILayer))
}

// writeDockerManifest writes the file by which `docker load` finds images in a layout before Docker 25, and later with the store
// that is not containerd's. That store has one platform for each name.
func writeDockerManifest(to string, images []v1.Image, tags []string) error {
	blob := func(h v1.Hash) string { return path.Join("blobs", h.Algorithm, h.Hex) }
	var manifest tarball.Manifest
	for i, image := range images {
		config, err := image.ConfigName()
		if err != nil {
			return err
		}
		layers, err := image.Layers()
		if err != nil {
			return err
		}
		entry := tarball.Descriptor{Config: blob(config), RepoTags: tags[i : i+1]}
		for _, layer := range layers {
			digest, err := layer.Digest()
			if err != nil {
				return err
			}
			entry.Layers = append(entry.Layers, blob(digest))
		}
		manifest = append(manifest, entry)
	}
	text, err := json.Marshal(manifest)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o644)
}

// archiveFolder writes the files of a folder into an archive, in the order of their names.
func (r release) archiveFolder(folder, to string) error {
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer out.Close()
	w := tar.NewWriter(out)
	err = filepath.WalkDir(folder, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, file)
		if err != nil {
			return err
		}
		return r.archive(w, file, filepath.ToSlash(name), 0o644)
	})
	if err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return out.Close()
}
